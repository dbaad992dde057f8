"""Pages name files, modules and conventions that exist."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from benchmarks.evaluation.conventions import CONVENTIONS

ROOT = Path(__file__).resolve().parents[3]


def pages():
    found = [*ROOT.glob("*.md"), *ROOT.glob("[cdefr]*/*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@pytest.mark.parametrize("page", pages())
def test_pages_name_files_and_modules_that_exist(page):
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    folders = "benchmarks|methods|workflow|config|docs|examples|tests"
    paths = re.findall(rf"`((?:{folders})/[\w./-]+)`", text)
    modules = re.findall(rf"python -m ((?:{folders})\.[\w.]+)", text)
    missing = [name for name in links if not ((ROOT / page).parent / name).exists()]
    missing += [name for name in paths if not (ROOT / name).exists()]
    missing += [name for name in modules if importlib.util.find_spec(name) is None]
    # What used to be there may be named by the page that tells of changes.
    gone = {"config/ranknet_taug.yaml", "config/realdata.yaml"}
    assert set(missing) <= (gone if page == "CHANGELOG.md" else set())


def test_every_convention_has_a_row_on_its_page():
    page = (ROOT / "docs/conventions.md").read_text()
    assert re.findall(r"^\| `([\w-]+)`", page, re.MULTILINE) == list(CONVENTIONS)


def test_every_key_of_a_configuration_is_explained():
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    keys = (ROOT / "config/README.md").read_text().partition("## Keys")[2]
    assert re.findall(r"^\| `(\w+)`", keys, re.MULTILINE) == list(schema["properties"])
    for nested in (schema["$defs"]["budget"], schema["properties"]["define"]):
        assert [key for key in nested["properties"] if f"`{key}`" not in keys] == []


def test_every_configuration_is_listed():
    page = (ROOT / "config/README.md").read_text()
    listed = set(re.findall(r"^\| `([\w.]+\.yaml)`", page, re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "config").glob("*.yaml")}
