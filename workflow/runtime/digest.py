"""A digest of the code that decides a result: what a class uses of this project, by name.

Snakemake does not see library code, so the digest goes into a rule's params. From ``module:Class``
on, it follows names: of every module only the top-level functions, classes and constants that are
reached count, together with what acts when the module is imported (a loop, a call of ours in an
assignment or as a decorator, which may register something). A name that cannot be followed
(a star import, ``globals()``, a module passed around) makes the whole module count. What is hashed
is the syntax tree without docstrings: a comment or a blank line costs no rerun.

Modules of the project and those beside the module of a root count; installed packages do not. A
module with a ``DIGEST_EXEMPT`` is a contract without computation and is left out together with
what it imports; its value, ``{name: module}``, says which modules count where a name is defined.
Methods of classes that are marked ``@price_only`` estimate what a fit will cost; they and what they
alone use are left out, too.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

PROJECT = ("benchmarks", "methods", "workflow")
WHOLE, ON_IMPORT = "*", ""
"""In place of a name: all of a module, and what it does when it is imported."""
PRICE_MARK = "price_only"
"""The decorator of methods that change no result, see :mod:`methods.cost`."""
Use = tuple[str, str]
"""A module and a name in it."""


@cache
def code_digest(*targets: str) -> str:
    """The digest of ``module:Class`` targets (or whole modules) and of all code they reach."""
    digest = hashlib.sha256()
    for module, statements in sorted(reached(*targets).items()):
        for number in sorted(statements):
            digest.update(f"{module}\n{_parsed(module).dump(number)}\n".encode())
    return digest.hexdigest()[:16]


def reached(*targets: str) -> dict[str, set[int]]:
    """The modules that targets use, and the numbers of their top-level statements that count."""
    roots = [target.partition(":")[::2] for target in targets]
    for module, _ in roots:
        if not _source(module):
            raise ModuleNotFoundError(f"no module named {module!r} to take a digest of")
    beside = {Path(_source(module)).parents[module.count(".")] for module, _ in roots}
    tops = {*PROJECT, *(module.partition(".")[0] for module, _ in roots)}
    found: dict[str, set[int]] = {}
    todo: list[Use] = [(module, name or WHOLE) for module, name in roots]
    seen: set[Use] = set()
    defined: set[str] = set()
    switched_on: dict[str, str] = {}
    while todo:
        use = todo.pop()
        module, name = use
        if use in seen or not _is_own(module, tops, beside):
            continue
        seen.add(use)
        parsed = _parsed(module)
        if parsed.exempt is not None:
            switched_on |= parsed.exempt
        else:
            numbers, uses = parsed.statements(name)
            found.setdefault(module, set()).update(numbers)
            todo += [(module, ON_IMPORT), *uses]
            for number in numbers:
                todo += parsed.uses(number)
                defined |= parsed.defines(number)
        todo += [(switched_on[name], WHOLE) for name in defined & switched_on.keys()]
    return found


class _Module:
    """A module's top-level statements: the names they bind, and what they refer to."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.package = name if source.endswith("__init__.py") else name.rpartition(".")[0]
        tree = ast.parse(Path(source).read_text(encoding="utf-8"), filename=source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                own = [s for s in node.body if not _is_bare_string(s)]
                if isinstance(node, ast.ClassDef):
                    own = [s for s in own if not _is_price(s)]
                node.body = own or [ast.Pass()]
        self.body = tree.body
        self.exempt: dict[str, str] | None = None
        self.bound: dict[str, list[int]] = {}
        self.imported: dict[str, Use] = {}
        self.on_import: list[int] = []
        self.runs: list[Use] = []
        for number, statement in enumerate(self.body):
            self._place(number, statement)

    def _place(self, number: int, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                self.imported[alias.asname or module] = (module, WHOLE)
                self.runs.append((alias.name, ON_IMPORT))
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                use = self._imported_from(statement, alias.name)
                self.runs.append(use if alias.name == WHOLE else (use[0], ON_IMPORT))
                self.imported[alias.asname or alias.name] = use
        elif names := _bound_by(statement):
            for name in names:
                self.bound.setdefault(name, []).append(number)
            if any(self._is_ours(call) for call in _calls_on_import(statement)):
                self.on_import.append(number)  # it may register something
            if "DIGEST_EXEMPT" in names and isinstance(statement, ast.Assign | ast.AnnAssign):
                assert statement.value is not None
                self.exempt = ast.literal_eval(statement.value)
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            for inner in statement.body:
                self._place(number, inner)
        elif not (isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)):
            self.on_import.append(number)

    def _is_ours(self, call: ast.expr) -> bool:
        first = (_dotted(call) or [""])[0]
        top = self.imported.get(first, ("", ""))[0].partition(".")[0]
        return first in self.bound or top in (*PROJECT, self.name.partition(".")[0])

    def _imported_from(self, node: ast.ImportFrom, name: str) -> Use:
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")[: len(self.package.split(".")) - node.level + 1]
            base = ".".join([*parents, *([base] if base else [])])
        # ``from package import module`` names a module; anything else is in the base.
        inner = f"{base}.{name}"
        return (inner, WHOLE) if _source(inner) else (base, name)

    def statements(self, name: str) -> tuple[list[int], list[Use]]:
        """The statements that count for a name of this module, and what else does."""
        if name == ON_IMPORT:
            return self.on_import, self.runs
        if name in self.bound:
            return self.bound[name], []
        if name in self.imported and name != WHOLE:
            return [], [self.imported[name]]
        # Asked for whole, or bound in a way that is not followed.
        imports = (ast.Import, ast.ImportFrom)
        return [n for n, s in enumerate(self.body) if not isinstance(s, imports)], []

    def dump(self, number: int) -> str:
        """A statement as text that holds no positions."""
        return ast.dump(self.body[number])

    def uses(self, number: int) -> Iterator[Use]:
        """What a statement refers to, in this module and in others."""
        return self._uses(self.body[number])

    def defines(self, number: int) -> set[str]:
        """The names of all functions that a statement defines, methods of classes included."""
        nodes = ast.walk(self.body[number])
        return {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}

    def _uses(self, node: ast.AST) -> Iterator[Use]:
        if isinstance(node, ast.Import):
            yield from ((alias.name, WHOLE) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (self._imported_from(node, alias.name) for alias in node.names)
        elif isinstance(node, ast.Name | ast.Attribute) and (path := _dotted(node)):
            first, *rest = path
            if first in ("globals", "eval", "exec"):
                yield self.name, WHOLE
            elif first in self.imported:
                yield _within(self.imported[first], rest)
            elif first in self.bound:
                yield self.name, first
        else:
            for child in ast.iter_child_nodes(node):
                yield from self._uses(child)


def _within(use: Use, path: list[str]) -> Use:
    """What ``name.a.b`` means where the name is imported: as deep into modules as there are any."""
    module, name = use
    if name != WHOLE:
        return use
    for depth in range(len(path), -1, -1):
        inner = ".".join([module, *path[:depth]])
        if _source(inner):
            return inner, path[depth] if depth < len(path) else WHOLE
    return use


def _dotted(node: ast.AST) -> list[str]:
    """The parts of ``a.b.c``; nothing for an attribute of anything but a name."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (path := _dotted(node.value)):
        return [*path, node.attr]
    return []


def _bound_by(statement: ast.stmt) -> list[str]:
    """The names that a definition or a plain assignment binds; nothing for other statements."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets: list[Any] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    flat = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    names = [e.id for e in flat if isinstance(e, ast.Name)]
    return names if len(names) == len(flat) else []


def _calls_on_import(statement: ast.stmt) -> list[ast.expr]:
    """The functions that a definition's decorators or an assignment's value call."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [d.func if isinstance(d, ast.Call) else d for d in statement.decorator_list]
    return [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]


def _is_own(module: str, tops: set[str], beside: set[Path]) -> bool:
    source = _source(module)
    if not source or module.partition(".")[0] in tops:
        return bool(source)
    parents = Path(source).parents
    return "site-packages" not in source and any(folder in parents for folder in beside)


@cache
def _parsed(name: str) -> _Module:
    return _Module(name, _source(name))


@cache
def _source(name: str) -> str:
    """The path of a module's source without importing it; empty where there is none."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top) if top else None
    full = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return ""
        full = f"{full}.{part}"
        spec = PathFinder.find_spec(full, list(spec.submodule_search_locations))
    origin = spec.origin if spec else None
    return origin if origin and origin.endswith(".py") else ""


def _is_bare_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_price(statement: ast.stmt) -> bool:
    """Whether it is a method that estimates a cost, see :func:`methods.cost.price_only`."""
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(_dotted(mark)[-1:] == [PRICE_MARK] for mark in statement.decorator_list)
