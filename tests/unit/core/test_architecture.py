"""docs/architecture.md agrees with the tree and its imports, which point one way.

After a change of imports, run ``python tests/unit/core/test_architecture.py``: it rewrites the
table on the page.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/architecture.md"
RANK = {"benchmarks": 0, "methods": 1, "workflow": 2}
# Measurements are programs on top of everything; a test below sees that nothing imports them.
PROGRAMS = "benchmarks/speed"
# Every paper is a folder of the same kind, so the page has one row for all of them.
PAPERS = "benchmarks/papers"
ONE_PAPER = f"{PAPERS}/<id>"
TABLE = re.compile(r"(?<=<!-- imports -->\n).*(?=<!-- end of imports -->)", re.DOTALL)


def imported_modules(path):
    """Dotted names of the project's modules that a source imports, by any form of import."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".smk":  # Python only in part: keep its import statements
        text = "\n".join(
            re.findall(r"^(?:from [\w.]+ )?import (?:\([^)]*\)|.+)$", text, re.MULTILINE)
        )
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not read here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.partition(".")[0] in RANK)


def room_of(path):
    """The room of a source: its folder in a package, or the package for modules beside rooms."""
    package, name, *below = path.split("/")
    room = f"{package}/{name}"
    if room == PAPERS and below and (ROOT / PAPERS / below[0] / "paper.yaml").exists():
        return ONE_PAPER
    return room if (ROOT / room).is_dir() else package


@pytest.fixture(scope="module")
def sources():
    return read_sources()


def read_sources():
    """Path from the root -> project modules it imports, as paths without suffix."""
    found = {
        path.relative_to(ROOT).as_posix(): [m.replace(".", "/") for m in imported_modules(path)]
        for package in RANK
        for suffix in ("py", "smk")
        for path in sorted((ROOT / package).rglob(f"*.{suffix}"))
    }
    assert len(found) > 20
    return found


def rooms_on_disk():
    """Folders of the three packages that hold anything other than caches."""
    files = [path.relative_to(ROOT) for name in RANK for path in (ROOT / name).rglob("*.*")]
    kept = [path for path in files if "__pycache__" not in path.parts]
    return {"/".join(path.parts[:2]) for path in kept if len(path.parts) > 2}


def import_table(sources):
    """The page's table: a row per room with the other rooms that it imports."""
    graph = {}
    for path, modules in sources.items():
        room = room_of(path)
        graph.setdefault(room, set()).update(set(map(room_of, modules)) - {room})
    rows = [
        f"| `{room}` | {', '.join(f'`{other}`' for other in sorted(graph[room])) or 'none'} |"
        for room in sorted(graph)
    ]
    return "\n".join(["| room | imports |", "|---|---|", *rows, ""])


def test_the_page_has_the_imports_of_the_sources(sources):
    expected = import_table(sources)
    assert TABLE.search(PAGE.read_text()).group() == expected, (
        f"{PAGE.name} has other imports than the sources: review the change, then run "
        f"`python {Path(__file__).relative_to(ROOT)}`, which writes this table:\n{expected}"
    )


def test_the_page_names_the_rooms_on_disk():
    tree = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    named, package = set(), None
    for line in tree.splitlines():
        if top := re.match(r"(\w+)/", line):
            package = top.group(1)
        elif (room := re.match(r"  (\w+)/", line)) and package in RANK:
            named.add(f"{package}/{room.group(1)}")
    assert named == rooms_on_disk()


def test_imports_point_one_way(sources):
    wrong = [
        f"{path} imports {name}"
        for path, names in sources.items()
        if room_of(path) != PROGRAMS
        for name in names
        if RANK[name.partition("/")[0]] > RANK[path.partition("/")[0]]
    ]
    assert wrong == []


def test_nothing_imports_the_measurements(sources):
    wrong = [
        f"{path} imports {name}"
        for path, names in sources.items()
        if room_of(path) != PROGRAMS
        for name in names
        if name.startswith(PROGRAMS)
    ]
    assert wrong == []


def test_modules_are_of_a_readable_length(sources):
    lengths = {path: len((ROOT / path).read_text().splitlines()) for path in sources}
    assert {path: n for path, n in lengths.items() if n > 450} == {}


def test_rules_hold_no_lambda():
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        assert "lambda" not in path.read_text(), path


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: import_table(read_sources()), PAGE.read_text()))
