"""The digest follows code that decides a result, and nothing else."""

import ast
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.runtime import digest


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A throw-away package: adapter imports helper; bystander imports nothing of them."""
    name = "digested_" + tmp_path.name.replace("-", "_")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helper.py").write_text("def double(x):\n    return 2 * x\n")
    (folder / "adapter.py").write_text(
        f'"""Doc."""\nfrom {name}.helper import double\n\n\ndef fit(x):\n    """Fit."""\n'
        "    return double(x)\n"
    )
    (folder / "bystander.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def take(package, module):
    for cached in (digest._source, digest._parsed, digest.code_digest):
        cached.cache_clear()
    importlib.invalidate_caches()
    return digest.code_digest(f"{package.name}.{module}")


def changes(package, path, old, new, target="adapter"):
    before = take(package, target)
    edit(package / path, old, new)
    return take(package, target) != before


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_comments_docstrings_and_blank_lines_cost_nothing(package):
    before = take(package, "adapter")
    edit(package / "adapter.py", "return double", "# why\n\n    return double")
    edit(package / "adapter.py", '"""Fit."""', '"""Fit, better said."""')
    assert take(package, "adapter") == before


def test_code_changes_it(package):
    before = take(package, "adapter")
    edit(package / "adapter.py", "return double(x)", "return double(x) + 1")
    assert take(package, "adapter") != before


def test_imported_code_changes_it(package):
    before, bystander = take(package, "adapter"), take(package, "bystander")
    edit(package / "helper.py", "2 * x", "3 * x")
    assert take(package, "adapter") != before
    assert take(package, "bystander") == bystander


def test_relative_imports_are_followed(package):
    edit(package / "adapter.py", f"from {package.name}.helper import", "from .helper import")
    before = take(package, "adapter")
    edit(package / "helper.py", "2 * x", "3 * x")
    assert take(package, "adapter") != before


def test_nothing_is_imported_to_take_it(package):
    take(package, "adapter")
    assert f"{package.name}.adapter" not in sys.modules


def test_only_what_is_reached_of_a_module_counts(package):
    helper = (
        "SCALE = 2\n\n\ndef double(x):\n    return SCALE * x\n\n\ndef other(x):\n    return x\n"
    )
    (package / "helper.py").write_text(helper)
    assert not changes(
        package, "helper.py", "def other(x):\n    return x", "def other(x):\n    pass"
    )
    assert not changes(package, "helper.py", "\ndef other", "\nUNUSED = 1\n\n\ndef other")
    assert changes(package, "helper.py", "SCALE = 2", "SCALE = 3")


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from NAME import helper", "helper.double(x)"),
        ("import NAME.helper as h", "h.double(x)"),
        ("import NAME.helper", "NAME.helper.double(x)"),
        ("from NAME.helper import *", "double(x)"),
    ],
)
def test_modules_are_followed_however_they_are_imported(package, imports, call):
    path = package / "adapter.py"
    for inner in (False, True):
        lines = [imports, f"def fit(x):\n    return {call}\n"]
        if inner and "*" not in imports:
            lines = [f"def fit(x):\n    {imports}\n    return {call}\n"]
        path.write_text("\n".join(lines).replace("NAME", package.name))
        (package / "helper.py").write_text("def double(x):\n    return 2 * x\n")
        assert changes(package, "helper.py", "2 * x", "3 * x", "adapter:fit")


def test_what_acts_on_import_counts(package):
    registry = "KNOWN = {}\n\n\ndef known(f):\n    KNOWN[f.__name__] = f\n    return f\n"
    (package / "registry.py").write_text(registry)
    (package / "helper.py").write_text(
        f"from {package.name}.registry import known\n\n\n@known\ndef one(x):\n    return 1\n\n\n"
        "def double(x):\n    return 2 * x\n\n\nfor i in range(3):\n    double(i)\n"
    )
    assert changes(package, "helper.py", "return 1", "return 11")
    assert changes(package, "helper.py", "range(3)", "range(4)")


def test_names_that_cannot_be_followed_make_the_whole_module_count(package):
    (package / "helper.py").write_text(
        "def double(x):\n    return globals()['other'](x)\n\n\ndef other(x):\n    return x\n"
    )
    assert changes(package, "helper.py", "return x", "return -x")


def test_modules_beside_a_single_file_count(package, tmp_path, monkeypatch):
    (tmp_path / "my_helper_of_digest.py").write_text("def help_(x):\n    return x\n")
    (tmp_path / "my_method_of_digest.py").write_text(
        "import json\nfrom my_helper_of_digest import help_\n\n\nclass Mine:\n"
        "    def fit(self, x):\n        return json.dumps(help_(x))\n"
    )
    found = digest.reached("my_method_of_digest:Mine")
    assert set(found) == {"my_method_of_digest", "my_helper_of_digest"}


def test_a_contract_is_left_out_and_says_what_its_names_switch_on(package):
    (package / "contract.py").write_text(
        f"DIGEST_EXEMPT = {{'dev_size': '{package.name}.bystander'}}\n\n\nclass Base:\n    a = 1\n"
    )
    code = f"from {package.name}.contract import Base\n\n\nclass Fit(Base):\n    pass\n"
    (package / "adapter.py").write_text(code)
    assert not changes(package, "contract.py", "a = 1", "a = 1\n    b = 2")
    assert not changes(package, "bystander.py", "VALUE = 1", "VALUE = 2")
    edit(package / "adapter.py", "pass", "def dev_size(self, meta):\n        return 9")
    assert changes(package, "bystander.py", "VALUE = 2", "VALUE = 3")


def test_the_contract_of_methods_holds_no_computation(root):
    """It is left out of every digest, so nothing in it may decide a number."""
    tree = ast.parse((root / "methods/interface.py").read_text())
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.Lambda, ast.AugAssign)
    arithmetic = (ast.Mult, ast.Div, ast.FloorDiv, ast.MatMult, ast.Pow, ast.Mod, ast.USub)
    assert [n for n in ast.walk(tree) if isinstance(n, (*loops, *arithmetic))] == []
    runtime = {
        name.partition(".")[0]
        for node in tree.body
        for name in [getattr(node, "module", None), *(a.name for a in getattr(node, "names", []))]
        if name
    }
    assert not runtime & {"numpy", "scipy", "numba", "torch"}


DEMO_DIGESTS = """
import json, yaml
from workflow.config import check, plan
from workflow.runtime.digest import code_digest
config = yaml.safe_load(open("config/config.yaml"))
jobs = plan(check(config, "demo"), "demo", ["demo-bow", "demo-text"])
print(json.dumps({str(job.cell.path): code_digest(*job.targets) for job in jobs}))
"""


@pytest.fixture
def demo(root, tmp_path):
    """A copy of the tree, and a function that takes the digests of the demo's cells in it."""
    for package in digest.PROJECT:
        kinds = shutil.ignore_patterns("__pycache__", "*.csv", "reference")
        shutil.copytree(root / package, tmp_path / package, ignore=kinds)
    shutil.copytree(root / "config", tmp_path / "config")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def digests():
        command = [sys.executable, "-c", DEMO_DIGESTS]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        return json.loads(done.stdout)

    return tmp_path, digests


def test_the_demo_reruns_what_an_edit_touches_and_nothing_else(demo):
    tree, digests = demo
    before = digests()
    assert len(before) > 15

    # A new kind of hook, a field of the context that carries it, a method of Method, a docstring.
    interface = tree / "methods/interface.py"
    kind = (
        'class Sampler(Hook):\n    kind = "sampler"\n\n\n@dataclass(frozen=True)\nclass FitContext'
    )
    edit(interface, "@dataclass(frozen=True)\nclass FitContext", kind)
    edit(
        interface,
        "    checkpoint: Path",
        '    sampler: "Sampler | None" = None\n    checkpoint: Path',
    )
    edit(
        interface,
        "    def skip(",
        "    def about(self) -> str:\n        return self.name\n\n    def skip(",
    )
    edit(interface, '"""A fitted method."""', '"""What a fit returns."""')
    new = (tree / "methods/hooks/regulariser.py").read_text().replace("regulariser", "sampler")
    (tree / "methods/hooks/sampler.py").write_text(new)
    assert digests() == before

    def moved(path, old, new):
        edit(tree / path, old, new)
        after = digests()
        found = {cell for cell in before if before[cell] != after[cell]}
        before.update(after)
        return found

    def cells_of(*bases):
        return {cell for cell in before if cell.split("/")[1] in bases}

    # Only methods that ask for a validation split depend on how it is drawn.
    split = moved("methods/holdout.py", "[seed, len(train), n]", "[seed, n]")
    assert cells_of("AttentionXML", "XML-CNN", "Joint") <= split
    assert all(cell.startswith("demo-text/") for cell in split - cells_of("Embedding"))
    newton = moved("methods/linear/direction.py", "FORCING = ", "FORCING = 0 + ")
    assert newton == cells_of("DiSMEC")
    k_means = moved("methods/trees/partition.py", "EPS = ", "EPS = 0 + ")
    assert k_means == cells_of("Parabel", "Bonsai", "AttentionXML-tree")
    ranknet = moved(
        "methods/variants/ranknet_core.py", "RESIDUAL, BOTTLENECK = ", "BOTTLENECK, RESIDUAL = "
    )
    assert ranknet == {cell for cell in before if "/RankNet" in cell and "simple" not in cell}
    hooks = moved(
        "methods/hooks/loss_weights.py", "self.positive * other.positive", "other.positive"
    )
    assert cells_of("DiSMEC", "LinearSVC", "Parabel", "Bonsai", "AttentionXML") <= hooks
    assert not hooks & cells_of("FastXML", "PfastreXML", "popularity", "random", "oracle")


def test_methods_do_not_depend_on_each_other():
    for target in ("methods.linear.svc:LinearSVC", "methods.controls:Popularity"):
        found = {module for module, statements in digest.reached(target).items() if statements}
        assert "methods.registry" not in found
    assert "methods.linear.svc" not in digest.reached("methods.controls")


def test_a_missing_module_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"no\.such"):
        digest.code_digest("no.such")


PRICED = """from methods.cost import price_only
from NAME.helper import double

UNIT = 1.0


def law(x):
    return UNIT * x


class Adapter:
    @price_only
    def cost(self, x):
        return law(x)

    def fit(self, x):
        return double(x)
"""


@pytest.fixture
def priced(package):
    (package / "adapter.py").write_text(PRICED.replace("NAME", package.name))
    return package


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return law(x)", "return 2 * law(x)"),
        ("return UNIT * x", "return UNIT * x * x"),
        ("UNIT = 1.0", "UNIT = 2.0"),
        ("    @price_only\n    def cost(self, x):\n        return law(x)\n\n", ""),
        ("def cost(self, x)", "def work(self, x)"),
    ],
)
def test_a_price_changes_no_result_and_no_digest(priced, old, new):
    assert not changes(priced, "adapter.py", old, new, "adapter:Adapter")


def test_what_is_not_marked_as_a_price_counts(priced):
    assert changes(priced, "helper.py", "2 * x", "3 * x", "adapter:Adapter")
    assert changes(priced, "adapter.py", "    @price_only\n", "", "adapter:Adapter")
    assert changes(priced, "adapter.py", "UNIT = 1.0", "UNIT = 2.0", "adapter:Adapter")


def test_every_price_of_the_project_is_marked_as_one():
    """So that a better estimate of a cost reruns no cell."""
    names = {"cost", "fits_of_base", "work", "work_once", "head_work", "encoder_work", "stages"}
    names |= {"parameters_mb"}
    unmarked = []
    for path in Path(digest.__file__).parents[2].glob("methods/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and path.name != "interface.py":
                unmarked += [
                    f"{path}:{s.lineno} {s.name}"
                    for s in node.body
                    if isinstance(s, ast.FunctionDef)
                    and s.name in names
                    and not digest._is_price(s)
                ]
    assert unmarked == []
