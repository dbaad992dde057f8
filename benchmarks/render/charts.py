"""The report's figures as Vega-Lite: specifications without rows, which the page's script adds.

One panel per specification, as wide as its place on the page; a legend stands below its panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.render.figure import COLOURS

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing is fetched
STAR = "M0,-1L.3,-.35L1,-.3L.45,.15L.6,.9L0,.5L-.6,.9L-.45,.15L-1,-.3L-.3,-.35Z"
SALTIRE = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
HOURGLASS = "M-.9,-1L.9,-1L.2,0L.9,1L-.9,1L-.2,0Z"
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross", "triangle-down"),
    *("triangle-right", "triangle-left", STAR, SALTIRE, HOURGLASS),
)
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
        "labelOverlap": True,
        "labelSeparation": 4,
    },
    "legend": {
        "orient": "bottom",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelColor": INK,
        "titleColor": INK,
        "symbolSize": 90,
        "labelLimit": 240,
        "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},
    },
    "title": {"anchor": "start", "fontSize": 13, "color": INK, "offset": 8},
}


def specifications(bases: Sequence[str], variants: Sequence[str]) -> Mapping[str, Spec]:
    """Every figure by name; bases have their colours and variants their shapes on all of them."""
    return {
        "headline": headline(bases, variants),
        "share": by_bin("share", "% of the possible (root scale)"),
        "gain": by_bin("gain", "points over plain (log beyond 0.3)"),
        "norm": by_bin("norm", "mean weight norm"),
        "cost": cost(bases, variants),
    }


def headline(bases: Sequence[str], variants: Sequence[str]) -> Spec:
    """PS against vanilla change, a cross per method, and the Pareto front.

    Rows: x, x0, x1, y, y0, y1, base, variant, front, setup; name, where one is to be written.
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
            "mark": {
                "type": "point",
                "filled": True,
                "size": 95,
                "opacity": 1,
                "cursor": "pointer",
            },
            "encoding": {
                "x": x,
                "y": y,
                **marks,
                "shape": _scale("variant", variants, SHAPES, "variant"),
            },
        },
        {
            "transform": [{"filter": "datum.name"}],
            "mark": {"type": "text", "dy": -13, "fontSize": 12, "fontWeight": 600, "color": INK},
            "encoding": {"x": x, "y": y, "text": {"field": "name"}},
        },
        height=360,
    )


SCALES: Mapping[str, Spec] = {
    # A tail's part is small beside the head's: both scales give it room.
    "share": {
        "scale": {"type": "sqrt", "domain": [0, 100]},
        "axis": {"values": [0, 1, 5, 20, 50, 100]},
    },
    "gain": {
        "scale": {"type": "symlog", "constant": 0.3},
        "axis": {"values": [-20, -10, -5, -2, -1, -0.3, 0, 0.3, 1, 2, 5, 10, 20], "format": "+~r"},
    },
    "norm": {"scale": {"zero": True}},
}


def by_bin(kind: str, title: str) -> Spec:
    """A value with its interval per bin and series, the series side by side within a bin.

    Rows: bin, order, series, value, low, high, text; the script gives the series their colours
    and shapes, which are the same in every panel.
    """
    bins = {"field": "bin", "type": "nominal", "sort": {"field": "order"}, "title": None}
    x = {**bins, "axis": {"labelAngle": 0}}
    y = {"field": "value", "type": "quantitative", "title": title, **SCALES[kind]}
    series = {"field": "series", "type": "nominal", "title": None}
    styled = {**series, "scale": {}, "legend": {"columns": 3, "title": None}}
    shared = {"x": x, "xOffset": {**series, "scale": {}}, "color": styled}
    shared["tooltip"] = _tooltip("series", "bin", "text")
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "clip": True},
            "encoding": {**shared, **ends},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {**shared, "y": y, "shape": styled},
        },
    ]
    if kind == "gain":
        layers.insert(0, _rule({"y": {"datum": 0}}))
    return _figure(*layers, height=230)


def cost(bases: Sequence[str], variants: Sequence[str]) -> Spec:
    """A PS metric against training time. Rows: x, y, y0, y1, base, variant."""
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "fit, seconds (logarithmic)",
        "scale": {"type": "log"},
        "axis": {"tickCount": 5, "format": ".3~r"},
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
            "mark": {
                "type": "point",
                "filled": True,
                "size": 85,
                "opacity": 1,
                "cursor": "pointer",
            },
            "encoding": {**marks, "y": y, "shape": _scale("variant", variants, SHAPES, "variant")},
        },
        height=300,
    )


def palette() -> dict[str, Sequence[str]]:
    """The colours and shapes of series by place; the plain base has the first of both."""
    return {"colours": [INK, *COLOURS[:6]], "shapes": SHAPES}


@cache
def script() -> str:
    """Vega, Vega-Lite and vega-embed as one script that needs no network."""
    import vl_convert

    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg] # its stub wants a snippet
    return bundle.replace("</script", "<\\/script")


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
        "axis": {"tickCount": 6, "format": "+.2~f"},
    }


def _rule(encoding: Spec) -> Spec:
    return {"mark": {"type": "rule", "color": "#9aa3b0", "strokeWidth": 1}, "encoding": encoding}


def _scale(field: str, names: Sequence[str], values: Sequence[str], title: str) -> Spec:
    cycled = [values[place % len(values)] for place in range(len(names))]
    legend = {"title": title, "columns": 3}
    scale = {"domain": list(names), "range": cycled}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _tooltip(*fields: str) -> list[Spec]:
    return [{"field": field, "type": "nominal"} for field in fields]
