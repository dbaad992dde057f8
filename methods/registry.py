"""Name -> adapter: everything that a run may ask for by name.

Adapters are named as ``module:Class`` and imported when asked for, so that a run of one method
neither pays for nor depends on the code of another.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from benchmarks.common.loading import load_class
from methods.interface import Method, Variant

PLAIN = "plain"

BASES: dict[str, str] = {
    "DiSMEC": "methods.linear.dismec:DiSMEC",
    "LinearSVC": "methods.linear.svc:LinearSVC",
    "omikuji": "methods.peers.omikuji:Omikuji",
    "napkinXC-BR": "methods.peers.napkinxc:NapkinXC",
    "PECOS-OVR": "methods.peers.pecos:Pecos",
    "PECOS-tree": "methods.peers.pecos_tree:PecosTree",
    "oracle": "methods.controls:Oracle",
    "popularity": "methods.controls:Popularity",
    "random": "methods.controls:Random",
    "Parabel": "methods.trees.parabel:Parabel",
    "Bonsai": "methods.trees.parabel:Bonsai",
    "FastXML": "methods.trees.fastxml:FastXML",
    "PfastreXML": "methods.trees.fastxml:PfastreXML",
    "AttentionXML": "methods.text.attention_xml:AttentionXML",
    "AttentionXML-tree": "methods.text.attention_xml_tree:AttentionXMLTree",
    "LaRoBERTa": "methods.text.laroberta:LaRoBERTa",
    "LaMiniLM": "methods.text.laroberta:LaMiniLM",
    "APLC-XLNet": "methods.text.aplc_xlnet:APLCXLNet",
    "APLC-MiniLM": "methods.text.aplc_xlnet:APLCMiniLM",
    "XML-CNN": "methods.text.xml_cnn:XMLCNN",
    "Embedding": "methods.embedding.embedding:Embedding",
    "HTTN": "methods.text.httn:HTTN",
    "EHTTN": "methods.text.httn:EHTTN",
    "Joint": "methods.text.document_method:Joint",
    "DXML": "methods.text.dxml:DXML",
    "OLTR": "methods.text.oltr:OLTR",
    "Imprinting": "methods.text.imprinting:Imprinting",
    "BBN": "methods.text.bbn:BBN",
    "LTMCP": "methods.text.ltmcp:LTMCP",
}

VARIANTS: dict[str, str] = {
    "PW": "methods.variants.pw:PW",
    "PW-cb": "methods.variants.pw:PWcb",
    "cb": "methods.variants.pw:ClassBalanced",
    "PW-cost": "methods.variants.pw:PWCostSensitive",
    "unbiased": "methods.variants.unbiased:Unbiased",
    "unbiased-bce": "methods.variants.unbiased_bce:UnbiasedBCE",
    "RankNet": "methods.variants.ranknet:RankNet",
    "RankNet-chosen": "methods.variants.ranknet_chosen:RankNetChosen",
    "RankNet-simple": "methods.variants.ranknet:RankNetSimple",
    "Taug-d": "methods.variants.taug:TaugD",
    "Taug-s": "methods.variants.taug:TaugS",
    "Taug-ds": "methods.variants.taug:Taug",
    "ensemble": "methods.variants.ensemble:Ensemble",
    "H-F": "methods.variants.httn_settings:WithoutFineTuning",
    "H-F-A": "methods.variants.httn_settings:WithoutAttention",
    "httn-setting": "methods.variants.httn_settings:Setting",
    "TailMix": "methods.variants.mixup:TailMix",
    "TailMix-nosim": "methods.variants.mixup:TailMixNoSim",
    "TailMix-nolpg": "methods.variants.mixup:TailMixNoLPG",
    "TailMix-nosim-nolpg": "methods.variants.mixup:TailMixNoSimNoLPG",
    "wordMix": "methods.variants.mixup:WordMix",
    "hiddenMix": "methods.variants.mixup:HiddenMix",
    "TMix": "methods.variants.mixup:TMix",
    "SSMix": "methods.variants.mixup:SSMix",
    "GLaS": "methods.variants.label_geometry:GLaS",
    "spread-out": "methods.variants.label_geometry:SpreadOut",
    "Laplacian": "methods.variants.label_geometry:Laplacian",
    "gravity": "methods.variants.label_geometry:Gravity",
}

ALIASES = {"Taug": "Taug-ds", "RankNet+Taug-ds": "RankNet+Taug"}
"""Other names of variants and of compositions: a method has one name, so one cell."""

Params = Mapping[str, Any]
Kind = TypeVar("Kind", Method, Variant)


@dataclass(frozen=True)
class Recipe:
    """A class and the parameters that differ from its defaults.

    ``owner`` is the name by which its parameters are told from those of others, in ``define:`` and
    in run.json. ``of_bases`` are parameters that a variant's definition sets in bases, by base.
    """

    target: str
    params: Params = field(default_factory=dict)
    owner: str = ""
    of_bases: Mapping[str, Params] = field(default_factory=dict)

    def build(self, kind: type[Kind]) -> Kind:
        """Import the class and make an instance."""
        try:
            cls = load_class(self.target, kind)
        except ValueError as error:
            raise UnknownNameError(str(error)) from error
        known = inspect.signature(cls).parameters
        for key in self.params:
            if key not in known:
                raise UnknownNameError(
                    f"{cls.__name__} has no parameter {key!r}; it has {', '.join(known) or 'none'}"
                )
        return cls(**self.params)

    def under(self, variants: Iterable[Recipe]) -> Recipe:
        """This base with the parameters that the variants put on it set in it."""
        params = dict(self.params)
        for variant in variants:
            params |= variant.of_bases.get(self.owner, {})
        return replace(self, params=params)


class UnknownNameError(ValueError):
    """A method, variant or parameter that does not exist; the message says what does."""


class MisfitError(ValueError):
    """A variant that cannot be applied to a base; the message says why."""


Definitions = Mapping[str, Mapping[str, Any]]
"""The user's own names: ``{name: {extends: known name | class: module:Class, params: {...}}}``.

Parameters of a composition name their owner, ``RankNet.rate: 0.1`` or ``RankNet: {rate: 0.1}``.
"""


def canonical(variant: str, definitions: Definitions | None = None) -> str:
    """The one name of a variant or composition, whichever of its names is given."""
    known = definitions or {}
    if variant in known:
        return variant
    parts = [part if part in known else ALIASES.get(part, part) for part in variant.split("+")]
    for first in range(len(parts)):
        inner = "+".join(parts[first:])  # what the variants before it are applied to
        if inner in ALIASES:
            return "+".join([*parts[:first], ALIASES[inner]])
    return "+".join(parts)


def base_recipe(name: str, definitions: Definitions | None = None) -> Recipe:
    """The recipe of a base by its name."""
    return _recipes("base", name, BASES, definitions or {})[0]


def variant_recipes(name: str, definitions: Definitions | None = None) -> list[Recipe]:
    """The recipes of a variant, innermost first: ``RankNet+Taug`` is RankNet on top of Taug."""
    return [] if name == PLAIN else _recipes("variant", name, VARIANTS, definitions or {})


def assemble(base: Recipe, variants: Iterable[Recipe] = ()) -> Method:
    """Build a base and apply the variants to it in order."""
    method = base.build(Method)  # type: ignore[type-abstract]
    for recipe in variants:
        variant = recipe.build(Variant)  # type: ignore[type-abstract]
        reason = variant.misfit(method)
        if reason is None and variant.name in method.params():
            reason = "it is applied already"
        if reason is not None:
            raise MisfitError(f"{variant.name} does not fit {method.name}: {reason}")
        method = variant.apply(method)
    return method


def get(
    base: str, variant: str | None = None, *, variant_params: Params | None = None, **params: Any
) -> Method:
    """A method by the name of its base and, if given, of a variant of it.

    ``params`` go to the base, ``variant_params`` to the variant; those of a composition name their
    owner, as ``{"RankNet": {"rate": 0.1}}`` or ``{"RankNet.rate": 0.1}``.
    """
    variants = variant_recipes(variant or PLAIN)
    if variant_params:
        if not variants:
            raise UnknownNameError("variant_params given without a variant")
        variants = _with_params(variants, variant_params, str(variant))
    recipe = _with_params([base_recipe(base)], params, base)[0]
    return assemble(recipe.under(variants), variants)


def _recipes(
    kind: str,
    name: str,
    known: Mapping[str, str],
    definitions: Definitions,
    seen: tuple[str, ...] = (),
) -> list[Recipe]:
    """The recipes behind a name, innermost first; ``seen`` are the definitions passed already."""
    if name in seen:
        raise UnknownNameError(f"{kind} {name!r} extends itself: {' -> '.join([*seen, name])}")
    if name in definitions:
        entry = definitions[name]
        if "class" in entry:
            recipes = [Recipe(entry["class"], owner=name)]
        else:
            recipes = _recipes(kind, entry["extends"], known, definitions, (*seen, name))
        return _with_params(recipes, entry.get("params", {}), name)
    target = ALIASES.get(name, name)
    if target in known:
        return [Recipe(known[target], owner=target)]
    if kind == "variant" and "+" in name:
        parts = [_recipes(kind, part, known, definitions, seen) for part in name.split("+")]
        return [recipe for part in reversed(parts) for recipe in part]
    options = [*known, *definitions] + ([PLAIN] if kind == "variant" else [])
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise UnknownNameError(f"unknown {kind} {name!r}: {hint}known are {', '.join(options)}")


def _with_params(recipes: list[Recipe], params: Params, name: str) -> list[Recipe]:
    """The recipes with parameters that name their owner, or belong to the only recipe."""
    found = {recipe.owner: recipe for recipe in recipes}
    for key, value in params.items():
        owner, _, parameter = key.rpartition(".")
        values = {parameter: value}
        whole = ALIASES.get(key, key)
        if isinstance(value, Mapping) and (whole in found or whole in BASES):
            owner, values = whole, dict(value)
        elif not owner:
            if len(found) > 1:
                options = ", ".join(f"{part}.{key}" for part in found)
                raise UnknownNameError(f"{name} has several parts; write one of {options}")
            owner = recipes[0].owner
        owner = ALIASES.get(owner, owner)
        last = recipes[-1].owner
        if owner in found:
            new = {**found[owner].params, **values}
            found[owner] = replace(found[owner], params=new)
        elif owner in BASES and recipes[0].owner not in BASES:
            of_bases = {**found[last].of_bases}
            of_bases[owner] = {**of_bases.get(owner, {}), **values}
            found[last] = replace(found[last], of_bases=of_bases)
        else:
            raise UnknownNameError(
                f"{name} has no part {owner!r}; its parts are {', '.join(found)}"
            )
    return [found[recipe.owner] for recipe in recipes]
