"""``reproduction.html``: every finding beside what the paper found; one file that loads nothing."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

from binas.reproduce._base import Cell, Row
from binas.version import TOOL

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1f2937}"
    "table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto;max-height:28rem}"
    "td,th{padding:.2rem .6rem;border-bottom:1px solid #e5e7eb;text-align:left;white-space:nowrap}"
    "img{max-width:100%}dt{font-weight:600}dd{margin:0 0 .6rem 0}.small{color:#6b7280;font-size:13px}"
)


class Section:
    """What the page shows of one experiment."""

    def __init__(
        self,
        name: str,
        item: str,
        claim: str,
        sentence: str,
        about: str,
        rows: Sequence[Row],
        png: bytes | None,
    ) -> None:
        self.name, self.item, self.claim, self.sentence = name, item, claim, sentence
        self.about, self.rows, self.png = about, rows, png

    def text(self) -> str:
        """As HTML; everything that is not ours is escaped."""
        picture = ""
        if self.png is not None:
            data = base64.b64encode(self.png).decode("ascii")
            picture = f'<img alt="{_safe(self.name)}" src="data:image/png;base64,{data}">'
        return (
            f'<section id="{_safe(self.name)}"><h2>{_safe(self.name)}: {_safe(self.item)}</h2>'
            f"<dl><dt>The paper found</dt><dd>{_safe(self.claim)}</dd><dt>This run "
            f"found</dt><dd>{_safe(self.sentence)}</dd></dl>"
            f"{picture}{_table(self.rows)}<p class=small>{_safe(self.about)}</p></section>"
        )


def render(title: str, about: Sequence[str], sections: Iterable[Section]) -> str:
    """The whole page."""
    body = "".join(section.text() for section in sections)
    lines = "".join(f"<p>{_safe(line)}</p>" for line in about)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{_safe(title)}</title><style>{STYLE}</style></head>'
        f"<body><h1>{_safe(title)}</h1>{lines}{body}<p class=small>{TOOL}</p></body></html>\n"
    )


def columns(rows: Sequence[Row]) -> list[str]:
    """Names of all columns, in the order in which rows first have them."""
    return list(dict.fromkeys(name for row in rows for name in row))


def cell(value: Cell) -> str:
    """One value as text; nothing where there is none."""
    return (
        "" if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    )


def _table(rows: Sequence[Row]) -> str:
    names = columns(rows)
    head = "".join(f"<th>{_safe(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{_safe(cell(row.get(name)))}</td>' for name in names)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _safe(text: str) -> str:
    return html.escape(str(text), quote=True)
