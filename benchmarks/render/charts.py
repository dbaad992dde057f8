"""The report's figures as Vega-Lite: specifications without rows, which the page's script adds.

One panel per specification, as wide as its place on the page; a legend stands below its panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.render.figure import COLOURS

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"  # a name; nothing is fetched
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
INK, SOFT, LINE = "#1c2330", "#5b6575", "#dfe3ea"
FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif'
CONFIG: Spec = {
    "font": FONT,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "gridColor": "#e9edf2",
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": 600,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "legend": {
        "orient": "bottom",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelColor": INK,
        "titleColor": INK,
        "symbolSize": 90,
        "labelLimit": 240,
    },
    "title": {"anchor": "start", "fontSize": 13, "color": INK, "offset": 8},
}


def specifications(bases: Sequence[str], variants: Sequence[str]) -> Mapping[str, Spec]:
    """Every figure by name; bases have their colours and variants their shapes on all of them."""
    return {
        "headline": headline(bases, variants),
        "share": by_bin("share", "reached, % of the possible"),
        "gain": by_bin("gain", "change over plain, points"),
        "norm": by_bin("norm", "mean weight norm"),
        "cost": cost(bases, variants),
    }


def headline(bases: Sequence[str], variants: Sequence[str]) -> Spec:
    """PS against vanilla change, a cross per method, and the Pareto front.

    Rows: x, x0, x1, y, y0, y1, base, variant, front, setup.
    """
    x = _axis("x", "change of the vanilla metrics, %")
    y = _axis("y", "change of the PS metrics, %")
    colour = _scale("base", bases, COLOURS, "base")
    marks = {"color": colour, "tooltip": _tooltip("base", "variant", "PS", "vanilla", "seeds")}
    return _figure(
        _rule({"x": {"datum": 0}}),
        _rule({"y": {"datum": 0}}),
        {
            "transform": [{"filter": "datum.front"}],
            "mark": {"type": "line", "color": SOFT, "strokeDash": [4, 3], "strokeWidth": 1.2},
            "encoding": {"x": x, "y": y, "order": {"field": "x"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.6},
            "encoding": {"x": {**x, "field": "x0"}, "x2": {"field": "x1"}, "y": y, **marks},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.6},
            "encoding": {"y": {**y, "field": "y0"}, "y2": {"field": "y1"}, "x": x, **marks},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 95, "opacity": 1, "cursor": "pointer"},
            "encoding": {"x": x, "y": y, **marks, "shape": _scale("variant", variants, SHAPES, "variant")},
        },
        {
            "transform": [{"filter": "datum.front"}],
            "mark": {"type": "text", "dy": -13, "fontSize": 12, "fontWeight": 600, "color": INK},
            "encoding": {"x": x, "y": y, "text": {"field": "variant"}},
        },
        height=360,
    )


def by_bin(field: str, title: str) -> Spec:
    """A value with its interval per bin and series, the series side by side within a bin.

    Rows: bin, series, order, value, low, high, text.
    """
    x = {
        "field": "bin",
        "type": "nominal",
        "sort": {"field": "order"},
        "title": None,
        "axis": {"labelAngle": 0},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"zero": field != "norm"},
    }
    offset = {"field": "series", "sort": {"field": "place"}}
    series = {"field": "series", "type": "nominal", "sort": {"field": "place"}, "title": None}
    legend = {"columns": 3, "title": None}
    colour = {**series, "scale": {"range": [INK, *COLOURS[:6]]}, "legend": legend}
    shape = {**series, "scale": {"range": list(SHAPES)}, "legend": legend}
    tooltip = _tooltip("series", "bin", "text")
    layers = [
        {
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
                "color": colour,
                "tooltip": tooltip,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {
                "x": x,
                "xOffset": offset,
                "y": y,
                "color": colour,
                "shape": shape,
                "tooltip": tooltip,
            },
        },
    ]
    if field != "share":
        layers.insert(0, _rule({"y": {"datum": 0}}))
    return _figure(*layers, height=230)


def cost(bases: Sequence[str], variants: Sequence[str]) -> Spec:
    """A PS metric against training time. Rows: x, y, y0, y1, base, variant."""
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "fit, seconds (logarithmic)",
        "scale": {"type": "log"},
        "axis": {"tickCount": 5, "format": "~g"},
    }
    y = {"field": "y", "type": "quantitative", "title": None, "scale": {"zero": False}}
    marks = {
        "x": x,
        "color": _scale("base", bases, COLOURS, "base"),
        "tooltip": _tooltip("base", "variant", "fit", "memory", "score"),
    }
    return _figure(
        {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": {**marks, "y": {**y, "field": "y0"}, "y2": {"field": "y1"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 85, "opacity": 1, "cursor": "pointer"},
            "encoding": {**marks, "y": y, "shape": _scale("variant", variants, SHAPES, "variant")},
        },
        height=300,
    )


@cache
def script() -> str:
    """Vega, Vega-Lite and vega-embed as one script that needs no network."""
    import vl_convert

    return str(vl_convert.javascript_bundle()).replace("</script", "<\\/script")


def _figure(*layers: Spec, height: int) -> Spec:
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": []},
        "layer": list(layers),
        "config": CONFIG,
    }


def _axis(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "axis": {"tickCount": 6, "format": "+~g"},
    }


def _rule(encoding: Spec) -> Spec:
    return {"mark": {"type": "rule", "color": "#9aa3b0", "strokeWidth": 1}, "encoding": encoding}


def _scale(field: str, names: Sequence[str], values: Sequence[str], title: str) -> Spec:
    cycled = [values[place % len(values)] for place in range(len(names))]
    legend = {"title": title, "columns": 4}
    scale = {"domain": list(names), "range": cycled}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _tooltip(*fields: str) -> list[Spec]:
    return [{"field": field, "type": "nominal"} for field in fields]
