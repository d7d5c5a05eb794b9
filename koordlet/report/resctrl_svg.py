"""The picture of who may fill which way of which cache. Pure.

Covers: a row for each group, a cell for each way, a bar for bandwidth, one cache below the other.
Does not cover: the facts (``report.resctrl_json``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape

from koordlet.model import resctrl, schemata

_CELL, _ROW, _LEFT, _TOP = 18, 22, 170, 30
_COLOURS = {"LSR": "#1b6ca8", "LS": "#3fa34d", "BE": "#d98c21", "root": "#9aa0a6"}
_OTHER = "#8757a8"
_STYLE = "font:12px sans-serif;fill:#202124"


def render(control: resctrl.Resctrl, labels: Mapping[str, str]) -> str:
    """The whole picture; ``labels`` are the names of groups for people."""
    parts: list[str] = []
    y, widest = _TOP, 0
    for cache in control.hardware.caches:
        for domain in cache.domains:
            parts.append(_text(10, y, f"{cache.name} {domain}: {cache.ways} ways"))
            y += 8
            for group in control.groups.values():
                mask = schemata.parse(group.schemata).get(cache.name, domain) or 0
                parts.extend(_ways(labels[group.name], mask, cache, y))
                y += _ROW
            y += _ROW
            widest = max(widest, cache.ways)
    for bandwidth in control.hardware.bandwidths:
        for domain in bandwidth.domains:
            parts.append(
                _text(
                    10,
                    y,
                    f"{bandwidth.name} {domain}: {bandwidth.free(domain)} {bandwidth.unit.value}",
                )
            )
            y += 8
            for group in control.groups.values():
                value = schemata.parse(group.schemata).get(bandwidth.name, domain)
                parts.extend(_bar(labels[group.name], value, bandwidth.free(domain), y))
                y += _ROW
            y += _ROW
    width = _LEFT + _CELL * max(widest, 20) + 80
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}"'
        f' viewBox="0 0 {width} {y}" role="img" style="{_STYLE}">\n'
        f"<title>Cache ways and memory bandwidth by group</title>\n{body}\n</svg>\n"
    )


def _ways(name: str, mask: int, cache: resctrl.Cache, y: int) -> Iterable[str]:
    yield _text(20, y + 14, name)
    bits = cache.mask.bit_length()
    for way in range(bits):
        owned = mask >> way & 1
        fill = _COLOURS.get(name, _OTHER) if owned else "#eceff1"
        # The highest way is drawn first, as the mask is read.
        x = _LEFT + _CELL * (bits - 1 - way)
        state = "may fill" if owned else "may not fill"
        yield (
            f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{fill}">'
            f"<title>{escape(name)} {state} way {way} of {cache.name}</title></rect>"
        )


def _bar(name: str, value: int | None, whole: int, y: int) -> Iterable[str]:
    yield _text(20, y + 14, name)
    share = 0.0 if value is None else min(1.0, value / max(1, whole))
    full = _CELL * 20
    yield f'<rect x="{_LEFT}" y="{y}" width="{full}" height="16" fill="#eceff1"/>'
    fill = _COLOURS.get(name, _OTHER)
    yield f'<rect x="{_LEFT}" y="{y}" width="{full * share:.0f}" height="16" fill="{fill}"/>'
    yield _text(_LEFT + full + 6, y + 13, "?" if value is None else str(value))


def _text(x: int, y: int, words: str) -> str:
    return f'<text x="{x}" y="{y}">{escape(words)}</text>'
