"""JSON Schema validation with messages that say which key is wrong and what it may be."""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

SIZE_LIMIT = 1_000_000
"""Entries of a document: aliases of YAML let a few lines stand for billions."""
FAULT_LENGTH = 500
DIGITS = 1000
"""Of a whole number: Python refuses to spell out one of some thousands, in an error, too."""


class InvalidDocumentError(ValueError):
    """A file that does not follow its schema; the message has a line for each fault."""


def _is_integer(_: Any, value: Any) -> bool:
    # By JSON Schema 1.0 is an integer, but a seed of 1.0 is another path than one of 1.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: Any) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if not isinstance(instance, str):
        return
    # Python's $ also matches before a line end.
    if not re.search(pattern, instance) or (pattern.endswith("$") and instance.endswith("\n")):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"pattern": _pattern},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)


def validate(document: Any, schema: str | Path, source: str) -> Any:
    """The document with the schema's defaults filled in, or an error naming every fault.

    ``source`` is what the user calls the document: a file's path, mostly.
    """
    rules = load_yaml(schema)
    try:
        size = _size(document, {})
    except RecursionError:
        raise InvalidDocumentError(f"{source} is not valid:\n  nested too deeply") from None
    except OverflowError as error:
        raise InvalidDocumentError(f"{source} is not valid:\n  {error}") from None
    if size > SIZE_LIMIT:
        raise InvalidDocumentError(
            f"{source} is not valid:\n  it stands for more than {SIZE_LIMIT:,} entries, or holds "
            "itself; write out what its aliases (*name) repeat"
        )
    faults = sorted(_Validator(rules).iter_errors(document), key=lambda e: [str(p) for p in e.path])
    if faults:
        lines = "\n".join(f"  {_shortened(_describe(fault))}" for fault in faults)
        raise InvalidDocumentError(f"{source} is not valid:\n{lines}")
    return _with_defaults(copy.deepcopy(document), rules, rules)


@cache
def load_yaml(path: str | Path) -> Any:
    """The content of a YAML file, read once and by the fast parser; not to be changed in place."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(Path(path).read_text(encoding="utf-8"), Loader=loader)


def _size(value: Any, known: dict[int, float]) -> float:
    """How many entries a document has when its aliases are written out; inf if it holds itself."""
    if not isinstance(value, dict | list | tuple):
        if isinstance(value, int) and value.bit_length() > DIGITS * math.log2(10):
            raise OverflowError(f"a whole number of more than {DIGITS:,} digits")
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # until it is known: met again only by a loop
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(item, known) for item in inner)
    return known[id(value)]


def _shortened(line: str) -> str:
    return line if len(line) <= FAULT_LENGTH else f"{line[:FAULT_LENGTH]} ..."


def _describe(fault: Any) -> str:
    where = _key(fault)
    if fault.validator == "additionalProperties":
        known = list(fault.schema.get("properties", {}))
        unknown = [key for key in fault.instance if key not in known]
        hints = [difflib.get_close_matches(str(key), known, n=1) for key in unknown]
        did_you_mean = ", ".join(f"did you mean {hint[0]!r}?" for hint in hints if hint)
        return (
            f"{where}: unknown key {', '.join(map(repr, unknown))}; {did_you_mean}"
            f"{' ' if did_you_mean else ''}allowed are {', '.join(known)}"
        )
    if fault.validator == "enum":
        options = ", ".join(map(str, fault.validator_value))
        return f"{where}: {fault.instance!r} is not one of {options}"
    if fault.validator == "type":
        wanted = fault.validator_value
        wanted = wanted if isinstance(wanted, str) else " or ".join(wanted)
        if isinstance(fault.instance, float) and not math.isfinite(fault.instance):
            wanted += " and finite"
        return f"{where}: {fault.instance!r} should be of type {wanted}"
    relations = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
    if fault.validator in relations:
        relation = relations[fault.validator]
        return f"{where}: {fault.instance!r} should be {relation} {fault.validator_value}"
    if fault.validator == "required":
        missing = [key for key in fault.validator_value if key not in fault.instance]
        return f"{where}: {', '.join(map(repr, missing))} is missing"
    if fault.validator in ("oneOf", "anyOf") and fault.context:
        return f"{where}: " + ", or ".join(_describe(inner) for inner in fault.context)
    return f"{where}: {fault.message}"


def _key(fault: jsonschema.ValidationError) -> str:
    key = ""
    for part in fault.absolute_path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key or "the top level"


def _with_defaults(value: Any, rules: dict[str, Any], root: dict[str, Any]) -> Any:
    rules = _resolved(rules, root)
    if isinstance(value, dict):
        for key, rule in rules.get("properties", {}).items():
            rule = _resolved(rule, root)
            if key not in value and "default" in rule:
                value[key] = copy.deepcopy(rule["default"])
            if key in value:
                value[key] = _with_defaults(value[key], rule, root)
    elif isinstance(value, list) and "items" in rules:
        return [_with_defaults(item, rules["items"], root) for item in value]
    return value


def _resolved(rules: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = rules.get("$ref")
    if reference is None:
        return rules
    target: Any = root
    for part in _pointer(reference):
        target = target[part]
    return {**target, **{k: v for k, v in rules.items() if k != "$ref"}}


def _pointer(reference: str) -> Iterator[str]:
    yield from reference.removeprefix("#/").split("/")
