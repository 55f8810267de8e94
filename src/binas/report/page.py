"""The report as one self-contained HTML file. Numbers come from :mod:`binas.report.numbers`; scripts only draw them."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from binas.base.files import write_text
from binas.report.data import Chosen, Reference, ReportData, StepTime
from binas.report.numbers import report_numbers

__all__ = ["Chosen", "Reference", "ReportData", "StepTime", "page", "render", "write_report"]

FIGURES = ("dom.js", "format.js", "chart.js", "network.js", "explorer.js", "figures.js")
SCRIPTS = (*FIGURES, "page.js")
# Inside a <script> element these could end it or begin a comment; JSON may write them as escapes.
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(data: ReportData) -> str:
    """The page for these values: works offline and from disk, loads nothing."""
    return page(report_numbers(data))


def write_report(data: ReportData, path: Path) -> None:
    """Write the page, atomically."""
    write_text(Path(path), render(data))


def page(numbers: Mapping[str, Any], scripts: Sequence[str] = SCRIPTS) -> str:
    """The page that shows the numbers of :func:`binas.report.numbers.report_numbers`, or what other scripts draw."""
    style, script = _asset("page.css"), "\n".join(_asset(name) for name in scripts)
    return Template(_asset("page.html")).substitute(
        title=html.escape(str(numbers["title"])),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        numbers=embedded(numbers),
    )


def embedded(numbers: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element whatever names it holds."""
    text = json.dumps(numbers, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, escape in UNSAFE.items():
        text = text.replace(sign, escape)
    return text


def _asset(name: str) -> str:
    return files("binas.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's content security policy allows to run: this text and no other."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
