// The page's behaviour: tables that sort, filter and hide columns; the convention switch; the
// passport; the figures. Every text goes in as text, never as HTML.
(() => {
const D = JSON.parse(document.getElementById("page-data").textContent);
const $ = (selector, from = document) => from.querySelector(selector);
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const fixed = (value, decimals = 2, sign = false) => value == null ? "–"
  : ((sign && value >= 0 ? "+" : "") + value.toFixed(decimals)).replace("-", "−");
const range = (low, high, sign = false) =>
  low == null ? "" : `[${fixed(low, 2, sign)},\u00a0${fixed(high, 2, sign)}]`;

// ---- tables -------------------------------------------------------------------------------
const keyOf = (cell) => {
  const given = cell?.dataset.v;
  const text = given ?? cell?.textContent.trim() ?? "";
  const number = text === "" ? NaN : Number(text);
  return Number.isNaN(number) ? (given === "" ? NaN : text.toLowerCase()) : number;
};
const compare = (a, b) => {
  const missing = (x) => typeof x === "number" && Number.isNaN(x);
  if (missing(a) || missing(b)) return missing(a) - missing(b);  // what is missing goes last
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
};
const cellAt = (row, column) => {
  const cell = row.cells[Math.min(column, row.cells.length - 1)];
  return row.cells.length <= column && row.cells.length > 1 ? row.cells[1] : cell;
};
function sortBy(table, column, header) {
  const up = header.getAttribute("aria-sort") === "descending";
  $$("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.forEach((row, place) => { row.dataset.place ??= place; });
  const ordered = rows.map((row) => [keyOf(cellAt(row, column)), row]);
  const isNumber = (x) => typeof x === "number";
  ordered.sort(([a, first], [b, second]) => {
    const lost = [a, b].some((x) => isNumber(x) && Number.isNaN(x));
    return (lost || up ? 1 : -1) * compare(a, b) || first.dataset.place - second.dataset.place;
  });
  table.tBodies[0].append(...ordered.map(([, row]) => row));
  table.classList.add("sorted");
}
function hideColumn(table, column, hidden) {
  for (const row of table.rows) if (row.cells.length > 2 || row.parentNode.tagName === "THEAD")
    if (row.cells[column] && !row.cells[column].hasAttribute("colspan")) row.cells[column].hidden = hidden;
}
function tools(table) {
  const bar = make("div", {class: "tools"});
  const count = make("span", {class: "soft count", "aria-live": "polite"});
  const filter = make("input", {type: "search", placeholder: "filter rows",
    "aria-label": `Filter ${table.caption?.textContent ?? ""}`});
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
  };
  filter.addEventListener("input", apply);
  const headers = [...table.tHead.rows[0].cells];
  const choices = make("div", {class: "choices"});
  headers.forEach((header, column) => {
    const name = header.textContent.trim();
    const button = make("button", {type: "button", class: "sort", title: "Sort"}, name);
    button.addEventListener("click", () => sortBy(table, column, header));
    header.replaceChildren(button);
    if (!column) return;
    const box = make("input", {type: "checkbox"});
    box.checked = !header.hasAttribute("data-hidden");
    box.addEventListener("change", () => hideColumn(table, column, !box.checked));
    if (!box.checked) hideColumn(table, column, true);
    choices.append(make("label", {}, box, ` ${name}`));
  });
  bar.append(filter, make("details", {class: "column-choice"}, make("summary", {}, "columns"), choices), count);
  table.closest("figure").before(bar);
  return apply;
}

// ---- the convention switch --------------------------------------------------------------------
function switchTo(convention) {
  const note = $("#convention-note");
  document.body.classList.toggle("switched", Boolean(convention));
  note.hidden = !convention;
  note.textContent = convention ? `Our values under ${convention} (${$(`#convention option[value="${convention}"]`).title}). Intervals, marks and verdicts are of the tables' own conventions and are hidden.` : "";
  for (const cell of $$("td[data-m]")) {
    const button = $("button.n", cell);
    const setup = cell.closest("tr").dataset.s;
    if (!button || !setup) continue;
    button.dataset.first ??= button.textContent;
    cell.dataset.firstValue ??= cell.dataset.v;
    const value = D.values[setup]?.[convention]?.[cell.dataset.m];
    button.textContent = convention ? fixed(value) : button.dataset.first;
    cell.dataset.v = convention ? value ?? "" : cell.dataset.firstValue;
  }
}

// ---- the passport -----------------------------------------------------------------------------
function openPassport(id, metric, about = []) {
  const setup = D.setups[id];
  if (!setup) return;
  const title = setup.variant === D.plain ? setup.base : `${setup.base} ${setup.variant}`;
  $("#passport-title").textContent = `${title} on ${setup.dataset}`;
  const body = $("#passport-body");
  body.replaceChildren();
  // What a pointer shows over a number is told here too, for those who have none.
  const said = about.filter(Boolean);
  if (said.length) body.append(make("p", {class: "about"}, said.join("; ")));
  if (metric && D.values[id]) {
    const interval = D.intervals[id]?.[metric];
    const facts = make("dl", {class: "facts"});
    facts.append(make("dt", {}, metric), make("dd", {}, Object.entries(D.values[id])
      .filter(([, own]) => own[metric] != null)
      .map(([name, own]) => `${name} ${fixed(own[metric])}`).join(" · ")));
    if (interval) facts.append(make("dt", {}, "95 % interval"),
      make("dd", {}, `${range(interval[0], interval[1])} under ${D.convention}, ${interval[2]} seed${interval[2] > 1 ? "s" : ""}`));
    body.append(facts);
  }
  setup.cells.forEach((path, place) => {
    const run = D.runs[path];
    const facts = make("dl", {class: "facts"});
    for (const [name, text] of run.facts) facts.append(make("dt", {}, name), make("dd", {}, text));
    const part = make("details", {class: "cell"}, make("summary", {}, run.title), facts);
    if (run.params.length) {
      const params = make("dl", {class: "facts"});
      for (const [name, text] of run.params) params.append(make("dt", {}, name), make("dd", {}, text));
      part.append(make("details", {}, make("summary", {}, "parameters"), params));
    }
    if (run.log.length) part.append(make("p", {class: "soft"}, "end of its log"), make("pre", {}, run.log.join("\n")));
    const copy = make("button", {type: "button", class: "copy"}, "copy");
    copy.addEventListener("click", () => navigator.clipboard?.writeText(run.command)
      .then(() => { copy.textContent = "copied"; }).catch(() => { copy.textContent = "select and copy"; }));
    part.append(make("p", {class: "soft"}, "runs just this cell again: ", copy), make("pre", {class: "command"}, run.command));
    part.open = place === 0;
    body.append(part);
  });
  $("#passport").showModal();
}

// ---- figures ----------------------------------------------------------------------------------
const options = {actions: false, renderer: "svg", tooltip: {theme: "custom"}};
const drawn = new Map();
async function panel(holder, name, title, rows, change = () => {}) {
  const place = make("div", {class: "panel"});
  holder.append(place);
  const spec = structuredClone(D.charts[name]);
  spec.data.values = rows;
  if (title) spec.title = title;
  change(spec);
  // A layer without rows would make Vega warn of axes without ends.
  if (!rows.some((row) => row.front))
    spec.layer = spec.layer.filter(({transform}) => !["datum.front", "datum.name"].includes(transform?.[0].filter));
  if (innerWidth < 500) for (const {encoding} of spec.layer) for (const channel of ["color", "shape"])
    if (encoding[channel]?.legend) encoding[channel].legend.columns = 2;
  const key = place;
  drawn.get(key)?.finalize();
  const {view} = await vegaEmbed(place, spec, options);
  drawn.set(key, view);
  view.addEventListener("click", (_, item) => { if (item?.datum?.setup) openPassport(item.datum.setup); });
}
const clear = (name) => {
  const holder = $(`[data-chart="${name}"] .panels`);
  $$(".panel", holder).forEach((place) => { drawn.get(place)?.finalize(); drawn.delete(place); });
  holder.replaceChildren();
  return holder;
};
const datasets = [...new Set(Object.values(D.setups).map((setup) => setup.dataset))];
const many = datasets.length > 1;

function drawHeadline() {
  if (!$('[data-chart="headline"]')) return;
  const holder = clear("headline");
  for (const dataset of datasets) {
    const rows = D.headline.filter((point) => point.dataset === dataset).map((p) => ({...p,
      PS: `${fixed(p.y, 1, true)} % ${range(p.y0, p.y1, true)}`,
      vanilla: `${fixed(p.x, 1, true)} % ${range(p.x0, p.x1, true)}`}));
    if (!rows.length) continue;
    const [near, far] = apart(rows);
    nameFront(near);
    panel(holder, "headline", many ? dataset : null, near, (spec) => used(spec, near));
    if (far.length) holder.append(make("p", {class: "note"}, "Outside the picture: " +
      far.map((p) => `${p.variant} on ${p.base} (vanilla ${fixed(p.x, 1, true)} %, PS ${fixed(p.y, 1, true)} %)`).join("; ") + "."));
  }
}
// Points so far out that the others would be one spot are named beside the figure instead.
function apart(rows) {
  const size = (row) => Math.max(Math.abs(row.x), Math.abs(row.y));
  const sizes = rows.map(size).sort((a, b) => a - b);
  const limit = 3 * Math.max(sizes[Math.floor((sizes.length - 1) / 2)], 2);
  return [rows.filter((row) => size(row) <= limit), rows.filter((row) => size(row) > limit)];
}
// Names stand at the points of the front, but for one that would cover another's.
function nameFront(rows) {
  const span = (low, high) => Math.max(...rows.map((r) => r[high])) - Math.min(...rows.map((r) => r[low]));
  const [across, up] = [span("x0", "x1") / 500, span("y0", "y1") / 360];  // percent per pixel
  const placed = [];
  for (const row of rows.filter((r) => r.front).sort((a, b) => b.y - a.y)) {
    const reach = (other) => 4 * (row.variant.length + other.variant.length);  // pixels, half of both
    // The axes end at round numbers, so a percent may have little more than half these pixels.
    if (placed.some((o) => Math.abs(o.x - row.x) < 1.8 * reach(o) * across && Math.abs(o.y - row.y) < 30 * up)) continue;
    row.name = row.variant;
    placed.push(row);
  }
}
// Legends name only what a panel shows.
function used(spec, rows) {
  for (const layer of spec.layer) for (const channel of ["color", "shape"]) {
    const scale = layer.encoding?.[channel]?.scale;
    if (!scale?.domain) continue;
    const field = layer.encoding[channel].field;
    const kept = scale.domain.map((name, i) => [name, scale.range[i]]).filter(([name]) => rows.some((row) => row[field] === name));
    scale.domain = kept.map(([name]) => name);
    scale.range = kept.map(([, value]) => value);
  }
}
const binsShown = () => $("#tail-bins").value === "deciles"
  ? D.binNames.filter((name) => name.startsWith("decile")) : ["head", "torso", "tail", "once"];
const short = (name) => name.replace("decile ", "");
// Bases with variants have a panel each; the others share one.
function panels(dataset, has) {
  const ids = D.order.filter((id) => D.setups[id].dataset === dataset && has(id));
  const bases = Map.groupBy ? Map.groupBy(ids, (id) => D.setups[id].base)
    : ids.reduce((map, id) => map.set(D.setups[id].base, [...(map.get(D.setups[id].base) ?? []), id]), new Map());
  const found = [], rest = [];
  for (const [base, own] of bases) (own.length > 1 ? found.push([base, own, (id) => D.setups[id].variant]) : rest.push(...own));
  if (rest.length) found.push(["bases without variants", rest, (id) => D.setups[id].base]);
  return found;
}
// A variant has its colour and shape on every panel; so have the bases that stand alone.
const variants = [...new Set(D.order.map((id) => D.setups[id].variant))];
variants.sort((a, b) => (b === D.plain) - (a === D.plain));
function styled(spec, ids, label) {
  // Where two series are of one variant the bases tell them apart, by their places.
  const alone = new Set(ids.map((id) => D.setups[id].variant)).size < ids.length;
  const place = (id, i) => alone ? i : variants.indexOf(D.setups[id].variant);
  const domain = ids.map(label);
  const at = (list) => ids.map((id, i) => list[place(id, i) % list.length]);
  for (const {encoding} of spec.layer) {
    if (encoding.xOffset) encoding.xOffset.scale = {domain};
    if (encoding.color) encoding.color.scale = {domain, range: at(D.palette.colours)};
    if (encoding.shape) encoding.shape.scale = {domain, range: at(D.palette.shapes)};
  }
}
function drawTail() {
  const dataset = $("#tail-dataset").value, metric = $("#tail-metric").value, names = binsShown();
  const rowsOf = (ids, label, value) => ids.flatMap((id, place) => names.map((name, order) => {
    const found = value(id, D.binNames.indexOf(name));
    return found && {...found, bin: short(name), order, series: label(id), place, setup: id};
  }).filter(Boolean));
  const share = clear("share"), gain = clear("gain"), norm = clear("norm");
  const part = (id, i) => D.bins[id]?.[metric]?.[i];
  for (const [base, ids, label] of panels(dataset, (id) => D.bins[id])) {
    panel(share, "share", base, rowsOf(ids, label, (id, i) => {
      const b = part(id, i);
      if (!b || !b[3]) return null;
      const [value, low, high] = b.slice(0, 3).map((x) => 100 * x / b[3]);
      return {value, low, high, text: `${fixed(b[0])} ${range(b[1], b[2])} of ${fixed(b[3])}`};
    }), (spec) => styled(spec, ids, label));
    const changed = ids.filter((id) => D.setups[id].variant !== D.plain && part(id, 0)?.[4] != null);
    if (changed.length) panel(gain, "gain", base, rowsOf(changed, label, (id, i) => {
      const b = part(id, i);
      return b && {value: b[4], low: b[5], high: b[6], text: `${fixed(b[4], 2, true)} ${range(b[5], b[6], true)} points`};
    }), (spec) => styled(spec, changed, label));
  }
  gain.closest("figure").hidden = !gain.children.length;
  for (const [base, ids, label] of panels(dataset, (id) => D.norms[id]))
    panel(norm, "norm", base, rowsOf(ids, label, (id, i) => {
      const value = D.norms[id][i];
      return value == null ? null : {value, low: value, high: value, text: fixed(value, 3)};
    }), (spec) => styled(spec, ids, label));
  norm.closest("figure").hidden = !norm.children.length;
  fillBins(dataset, metric);
}
function fillBins(dataset, metric) {
  $$(".tail-metric").forEach((node) => { node.textContent = metric; });
  for (const place of $$("[data-bins]")) {
    place.hidden = place.dataset.bins !== $("#tail-bins").value;
    const table = $("table", place);
    fillTable(table, $$("th[data-bin]", table).map((header) => header.dataset.bin), dataset, metric);
    refilter[table.dataset.name]();
  }
}
function fillTable(table, names, dataset, metric) {
  table.tBodies[0].replaceChildren(...D.order
    .filter((id) => D.setups[id].dataset === dataset && D.bins[id]?.[metric])
    .map((id) => {
      const {base, variant} = D.setups[id];
      const name = make("th", {scope: "row"}, make("span", {class: "base"}, base), variant === D.plain ? "" : ` ${variant}`);
      const row = make("tr", {"data-s": id}, name);
      for (const bin of names) {
        const b = D.bins[id][metric][D.binNames.indexOf(bin)];
        const cell = make("td", {class: "num", "data-v": b?.[0] ?? ""});
        if (b && b[3]) {
          const sign = b[5] > 0 ? make("i", {class: "up"}, "▲") : b[6] < 0 ? make("i", {class: "down"}, "▼") : "";
          const about = `${metric}, ${bin}: ${fixed(b[0])} ${range(b[1], b[2])} of a possible ${fixed(b[3])}`;
          cell.append(make("button", {type: "button", class: "n", "data-s": id, title: about}, fixed(b[0])),
            make("span", {class: "soft"}, ` of ${fixed(b[3])}`), make("small", {class: "ci"}, range(b[1], b[2])));
          const same = b[4] === 0 && b[5] === 0 && b[6] === 0;
          if (b[4] != null) cell.append(make("small", {class: "ci always"}, same ? "no change" : `${fixed(b[4], 2, true)} ${range(b[5], b[6], true)} `, sign));
        } else cell.append(make("span", {class: "soft"}, "–"));
        row.append(cell);
      }
      return row;
    }));
}
function drawMoved() {
  const id = $("#moved-method").value, moved = D.moved[id];
  const holder = $("#moved");
  holder.replaceChildren();
  for (const [side, words] of [["gained", "gained"], ["lost", "lost"]]) {
    const rows = moved?.[side] ?? [];
    const body = make("tbody", {}, ...rows.map(([name, part, train, test, before, after]) => make("tr", {},
      make("th", {scope: "row", class: "label"}, name), make("td", {}, part), make("td", {class: "num"}, String(train)),
      make("td", {class: "num"}, `${fixed(before, before % 1 ? 1 : 0)} → ${fixed(after, after % 1 ? 1 : 0)} of ${test}`))));
    const head = make("thead", {}, make("tr", {}, ...["label", "bin"].map((text) => make("th", {}, text)),
      ...["in training", "found"].map((text) => make("th", {class: "num"}, text))));
    holder.append(make("figure", {class: "table"}, make("table", {},
      make("caption", {}, rows.length ? `Labels that ${words} most` : `No label ${words}`), ...(rows.length ? [head, body] : []))));
  }
}
function drawCost() {
  const holder = clear("cost");
  const names = Object.keys(Object.values(D.values)[0]?.[D.convention] ?? {});
  const metric = names.filter((name) => name.startsWith("PSP@")).sort((a, b) => a.slice(4) - b.slice(4)).pop();
  if (!metric) return;
  for (const dataset of datasets) {
    const rows = D.order.filter((id) => D.setups[id].dataset === dataset && D.fit[id]?.[0] > 0.001 && D.values[id])
      .map((id) => {
        const interval = D.intervals[id]?.[metric] ?? [];
        const y = D.values[id][D.convention]?.[metric];
        return {x: D.fit[id][0], y, y0: interval[0], y1: interval[1], base: D.setups[id].base, variant: D.setups[id].variant,
          fit: D.fit[id][1], memory: D.fit[id][2], score: `${metric} ${fixed(y)} ${range(interval[0], interval[1])}`, setup: id};
      }).filter((row) => row.y != null);
    if (rows.length) panel(holder, "cost", many ? dataset : null, rows, (spec) => {
      used(spec, rows);
      for (const layer of spec.layer) layer.encoding.y.title = metric;
    });
  }
}

// ---- start ------------------------------------------------------------------------------------
const refilter = {};
$$("table.widget").forEach((table) => { refilter[table.dataset.name] = tools(table); });
const metrics = Object.keys(Object.values(D.bins)[0] ?? {});
const preferred = metrics.filter((name) => name.startsWith("P@")).sort((a, b) => a.slice(2) - b.slice(2)).pop();
$("#tail-metric").append(...metrics.map((name) => make("option", name === preferred ? {selected: ""} : {}, name)));
$("#moved-method").append(...Object.keys(D.moved).map((id) => {
  const {dataset, base, variant} = D.setups[id];
  return make("option", {value: id, ...(id === D.first ? {selected: ""} : {})}, `${base} ${variant}${many ? ` on ${dataset}` : ""}`);
}));
if (!many) $("#tail-dataset").closest("label").hidden = true;
if (!Object.keys(D.moved).length) $("#moved-method").closest(".controls").hidden = true;
$("#convention").addEventListener("change", (event) => switchTo(event.target.value));
$("#show-intervals").addEventListener("change", (event) => document.body.classList.toggle("with-intervals", event.target.checked));
for (const id of ["tail-dataset", "tail-metric", "tail-bins"]) $(`#${id}`).addEventListener("change", drawTail);
$("#moved-method").addEventListener("change", drawMoved);
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.n");
  if (button) openPassport(button.dataset.s, button.dataset.m, [button.title, button.closest("td")?.title]);
  const link = event.target.closest('a[href^="#"]');
  const target = link && document.getElementById(link.getAttribute("href").slice(1));
  for (let node = target; node; node = node.parentElement) {
    if (node.tagName === "DETAILS") node.open = true;
    if (node.tagName === "TR") node.hidden = false;
  }
});
$("#passport").addEventListener("click", (event) => { if (event.target.id === "passport") event.target.close(); });
// On paper everything is open.
let closed = [];
addEventListener("beforeprint", () => { closed = $$("main details:not([open])"); closed.forEach((d) => { d.open = true; }); });
addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));
drawHeadline(); drawTail(); drawMoved(); drawCost();
document.documentElement.dataset.ready = "yes";
})();
