"""A digest of the code that decides a result: a module and what it imports from this project.

Snakemake does not see library code, so the digest goes into a rule's params. It is taken of the
syntax tree without docstrings: a comment, a docstring or a blank line costs no rerun.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

PROJECT = ("benchmarks", "methods", "workflow")


def code_digest(*modules: str) -> str:
    """The digest of the modules and of every module of the project that they import.

    A package's ``__init__`` counts only where something is imported from it by name: that it
    runs on the way to a sub-module does not make its other imports part of the method.
    """
    digest = hashlib.sha256()
    for name in sorted(_closure(modules)):
        digest.update(f"{name}\n{_normalised(_source(name))}\n".encode())
    return digest.hexdigest()[:16]


def _closure(modules: Iterable[str]) -> set[str]:
    roots = {*PROJECT, *(module.partition(".")[0] for module in modules)}
    found: set[str] = set()
    todo = list(modules)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        if not _source(name):
            raise ModuleNotFoundError(f"no module named {name!r} to take a digest of")
        found.add(name)
        todo += [
            imported
            for imported in _imports(name)
            if imported.partition(".")[0] in roots and _source(imported)
        ]
    return found


def _imports(name: str) -> Iterator[str]:
    source = _source(name)
    package = name if source.endswith("__init__.py") else name.rpartition(".")[0]
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            for alias in node.names:
                # ``from package import module`` names a module; anything else is in the base.
                inner = f"{base}.{alias.name}"
                yield inner if _source(inner) else base


@cache
def _source(name: str) -> str:
    """The path of a module's source without importing it; empty where there is none."""
    top, *rest = name.split(".")
    spec = importlib.util.find_spec(top)
    full = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return ""
        full = f"{full}.{part}"
        spec = PathFinder.find_spec(full, list(spec.submodule_search_locations))
    origin = spec.origin if spec else None
    return origin if origin and origin.endswith(".py") else ""


@cache
def _tree(source: str) -> ast.Module:
    return ast.parse(Path(source).read_text(encoding="utf-8"), filename=source)


@cache
def _normalised(source: str) -> str:
    tree = ast.parse(Path(source).read_text(encoding="utf-8"), filename=source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [s for s in node.body if not _is_bare_string(s)] or [ast.Pass()]
    return ast.dump(tree)


def _is_bare_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
