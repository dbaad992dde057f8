"""Headless Chromium on a page of ours, and what it complains about."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
    *("hide-scrollbars", "disable-dev-shm-usage"),
)
INSTALL = "make browser (on Debian: apt-get install chromium chromium-driver)"


def find_browser() -> tuple[str, str]:
    """Paths of Chromium and its driver, or an error that says how to get them."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    driver = shutil.which("chromedriver")
    if program and driver:
        return program, driver
    raise FileNotFoundError(f"no chromium and chromedriver on PATH: {INSTALL}")


class Browser:
    """One window; ``open`` loads a page and waits until its script is through."""

    def __init__(self) -> None:
        program, driver = find_browser()
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in FLAGS:
            options.add_argument(f"--{flag}")
        options.add_argument(f"--user-data-dir={self.profile}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_script_timeout(300)  # a machine may be busy
        self.driver.set_page_load_timeout(300)

    def open(self, page: Path, width: int = 1440, height: int = 1000) -> None:
        """Show a page at a size of the window, from scratch."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.resolve().as_uri())
        # The figures are drawn in promises; two frames later nothing moves any more.
        self.driver.execute_async_script(
            "const done = arguments[0], frame = requestAnimationFrame;"
            "const drawn = () => document.querySelectorAll('.panel svg').length;"
            "const wait = () => drawn() < document.querySelectorAll('.panel').length"
            "  ? setTimeout(wait, 50) : frame(() => frame(done)); wait();"
        )

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """Everything on the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened, the page and its own data left out."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        sent = [
            e["params"]["request"]["url"]
            for e in events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith(("file:", "data:", "blob:", "about:"))]

    def close(self) -> None:
        """End the browser and remove its profile."""
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)


def assert_sound(browser: Browser, page: Path, numbers: bool = True) -> None:
    """What holds of every report: it fits, it is quiet, it asks for nothing, row names stay."""
    for width, height in ((1440, 1000), (390, 844)):
        browser.open(page, width, height)
        assert browser.complaints() == []
        assert browser.requests() == []
        assert browser.run("return document.documentElement.dataset.ready") == "yes"
        assert browser.run(OVERFLOWING) == [], f"wider than {width}"
        if numbers:
            assert browser.run(FIRST_NUMBER) < height, "a number is on the first screen"
        assert browser.run(STICKY) == [], "row names stay when a table is scrolled"
        left = browser.run(PANEL_LEFTS)
        if width == 390:
            assert len({round(x) for x in left}) <= 1, "one panel per row"
        assert browser.run(CLIPPED) == [], "texts of figures are inside them"
        assert browser.run(FAINT) == [], "every text stands out from its ground (WCAG 2, level AA)"
    assert browser.run(DEAD_LINKS) == []


OVERFLOWING = """
if (document.documentElement.scrollWidth > innerWidth) return ['the page'];
const clipped = e => { for (let n = e.parentElement; n; n = n.parentElement) {
  if (getComputedStyle(n).overflowX !== 'visible' || n.tagName === 'DIALOG') return true; } };
return [...document.querySelectorAll('main *, header *')]
  .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1
    && !clipped(e) && !e.closest('svg, .skip, caption')).map(e => e.outerHTML.slice(0, 120));
"""
FIRST_NUMBER = """
return Math.min(...[...document.querySelectorAll('main button.n')]
  .filter(b => b.getClientRects().length).map(b => b.getBoundingClientRect().bottom));
"""
STICKY = """
const lost = [];
for (const table of document.querySelectorAll('table.widget')) {
  const figure = table.closest('figure'), head = table.querySelector('tbody th');
  if (!head || !figure.getClientRects().length) continue;
  figure.scrollLeft = 200;
  const left = figure.getBoundingClientRect().left;
  if (head.getBoundingClientRect().left < left - 1) lost.push(table.dataset.name);
  figure.scrollLeft = 0;
}
return lost;
"""
PANEL_LEFTS = """
return [...document.querySelectorAll('#tail .panel')].map(p => p.getBoundingClientRect().left);
"""
CLIPPED = """
const out = [];
for (const svg of document.querySelectorAll('.panel svg')) {
  const box = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll('text')) {
    const r = text.getBoundingClientRect();
    if (r.width && (r.right > box.right + 2 || r.left < box.left - 2)) out.push(text.textContent);
  }
}
return out;
"""
FAINT = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = c.slice(0, 3).map((x) => (x /= 255) <= .03928 ? x / 12.92
  : ((x + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
const ground = (node) => { for (; node; node = node.parentElement) {
  const c = channels(getComputedStyle(node).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c; }
  return [255, 255, 255]; };
const faint = new Set();
for (const node of document.querySelectorAll('header *, main *, footer *')) {
  if (node.closest('svg, script, .skip') || !node.checkVisibility()) continue;
  if (![...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
  const style = getComputedStyle(node), size = parseFloat(style.fontSize);
  const pair = [light(channels(style.color)), light(ground(node))].sort((a, b) => b - a);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  const ratio = (pair[0] + .05) / (pair[1] + .05);
  if (ratio < (large ? 3 : 4.5)) faint.add(`${node.tagName}.${node.className} ${ratio.toFixed(1)}`);
}
return [...faint];
"""
DEAD_LINKS = """
return [...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))
  .filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1)));
"""
