"""Name -> adapter: everything that a run may ask for by name.

Adapters are named as ``module:Class`` and imported when asked for, so that a run of one method
neither pays for nor depends on the code of another.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from methods.interface import Method, Variant

PLAIN = "plain"

BASES: dict[str, str] = {
    "DiSMEC": "methods.linear.dismec:DiSMEC",
    "LinearSVC": "methods.linear.svc:LinearSVC",
    "omikuji": "methods.peers.omikuji:Omikuji",
    "napkinXC-BR": "methods.peers.napkinxc:NapkinXC",
    "PECOS-OVR": "methods.peers.pecos:Pecos",
    "oracle": "methods.controls:Oracle",
    "popularity": "methods.controls:Popularity",
    "random": "methods.controls:Random",
    "Parabel": "methods.trees.parabel:Parabel",
    "Bonsai": "methods.trees.parabel:Bonsai",
    "FastXML": "methods.trees.fastxml:FastXML",
    "PfastreXML": "methods.trees.fastxml:PfastreXML",
}

VARIANTS: dict[str, str] = {
    "PW": "methods.variants.pw:PW",
    "PW-cb": "methods.variants.pw:PWcb",
    "cb": "methods.variants.pw:ClassBalanced",
    "PW-cost": "methods.variants.pw:PWCostSensitive",
    "unbiased": "methods.variants.unbiased:Unbiased",
    "RankNet": "methods.variants.ranknet:RankNet",
    "RankNet-chosen": "methods.variants.ranknet_chosen:RankNetChosen",
    "RankNet-simple": "methods.variants.ranknet:RankNetSimple",
    "Taug": "methods.variants.taug:Taug",
    "Taug-d": "methods.variants.taug:TaugD",
    "Taug-s": "methods.variants.taug:TaugS",
    "Taug-ds": "methods.variants.taug:Taug",
    "ensemble": "methods.variants.ensemble:Ensemble",
}


@dataclass(frozen=True)
class Recipe:
    """A class and the parameters that differ from its defaults."""

    target: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """The module that holds the class."""
        return self.target.partition(":")[0]

    def build(self) -> Any:
        """Import the class and make an instance."""
        module, _, name = self.target.partition(":")
        try:
            cls = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UnknownNameError(f"cannot import {self.target!r}: {error}") from error
        known = inspect.signature(cls).parameters
        for key in self.params:
            if key not in known:
                raise UnknownNameError(
                    f"{name} has no parameter {key!r}; it has {', '.join(known) or 'none'}"
                )
        return cls(**self.params)


class UnknownNameError(ValueError):
    """A method, variant or parameter that does not exist; the message says what does."""


class MisfitError(ValueError):
    """A variant that cannot be applied to a base; the message says why."""


Definitions = Mapping[str, Mapping[str, Any]]
"""The user's own names: ``{name: {extends: known name | class: module:Class, params: {...}}}``."""


def base_recipe(name: str, definitions: Definitions | None = None) -> Recipe:
    """The recipe of a base by its name."""
    return _recipe("base", name, BASES, definitions or {})


def variant_recipes(name: str, definitions: Definitions | None = None) -> list[Recipe]:
    """The recipes of a variant, innermost first: ``RankNet+Taug`` is RankNet on top of Taug."""
    if name == PLAIN:
        return []
    definitions = definitions or {}
    if name in definitions or name in VARIANTS:
        return [_recipe("variant", name, VARIANTS, definitions)]
    parts = reversed(name.split("+"))
    return [_recipe("variant", part, VARIANTS, definitions) for part in parts]


def assemble(base: Recipe, variants: Iterable[Recipe] = ()) -> Method:
    """Build a base and apply the variants to it in order."""
    method = base.build()
    if not isinstance(method, Method):
        raise UnknownNameError(f"{base.target} is not a Method")
    for recipe in variants:
        variant = recipe.build()
        if not isinstance(variant, Variant):
            raise UnknownNameError(f"{recipe.target} is not a Variant")
        reason = variant.misfit(method)
        if reason is not None:
            raise MisfitError(f"{variant.name} does not fit {method.name}: {reason}")
        method = variant.apply(method)
    return method


def get(
    base: str,
    variant: str | None = None,
    *,
    variant_params: Mapping[str, Any] | None = None,
    **params: Any,
) -> Method:
    """A method by the name of its base and, if given, of a variant of it.

    ``params`` go to the base, ``variant_params`` to the outermost variant.
    """
    recipes = variant_recipes(variant or PLAIN)
    if variant_params:
        if not recipes:
            raise UnknownNameError("variant_params given without a variant")
        recipes[-1] = Recipe(recipes[-1].target, variant_params)
    return assemble(Recipe(base_recipe(base).target, params), recipes)


def _recipe(kind: str, name: str, known: Mapping[str, str], definitions: Definitions) -> Recipe:
    params: dict[str, Any] = {}
    seen: list[str] = []
    while name in definitions:
        if name in seen:
            raise UnknownNameError(f"{kind} {name!r} extends itself: {' -> '.join([*seen, name])}")
        seen.append(name)
        entry = definitions[name]
        params = {**entry.get("params", {}), **params}
        if "class" in entry:
            return Recipe(entry["class"], params)
        name = entry["extends"]
    if name not in known:
        options = [*known, *definitions] + ([PLAIN] if kind == "variant" else [])
        close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownNameError(f"unknown {kind} {name!r}: {hint}known are {', '.join(options)}")
    return Recipe(known[name], params)
