"""The one Jinja environment: every page extends ``base.html.j2`` and has its style sheet."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> jinja2.Environment:
    """Templates of this folder, escaped; a name that is missing is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render_page(template: str, **values: Any) -> str:
    """A page as self-contained HTML."""
    return environment().get_template(f"{template}.html.j2").render(**values)


def template_digest() -> str:
    """Changes with any template or the style sheet, which a digest of code does not see."""
    files = sorted(path for path in TEMPLATES.iterdir() if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
