"""``resctrl``: a pod's own part of the last-level cache and of memory bandwidth.

A range that is empty or reversed is left out: the kernel refuses an empty mask.
"""

from __future__ import annotations

from koordlet.model import wishes
from koordlet.workloads import shapes

KEY = "node.koordinator.sh/resctrl"

_CACHE_ID = shapes.integer(0, 2**31 - 1)
_PERCENT = shapes.integer(0, 100)


def _span(value: object, problems: list[str]) -> tuple[int, int]:
    match value:
        case [first, last]:
            start, end = _PERCENT(first, problems), _PERCENT(last, problems)
        case _:
            msg = f"expected [start, end], found {shapes.shown(value)}"
            raise ValueError(msg)
    if start >= end:
        msg = f"the range {start}-{end} is empty"
        raise ValueError(msg)
    return start, end


def _cache(*, span: tuple[int, int], cache: int | None = None) -> wishes.CacheRange:
    return wishes.CacheRange(start=span[0], end=span[1], cache=cache)


def _part(*, everywhere: object = None, each: tuple[object, ...] = ()) -> tuple[object, ...]:
    return each if everywhere is None else (everywhere, *each)


def _both(make: shapes.Reader, make_one: shapes.Reader) -> shapes.Reader:
    """One schemata for all caches, and a list with one for each."""
    listed = shapes.listing(make_one)
    return shapes.record(
        _part, {"everywhere": ("schemata", make), "each": ("schemataPerCache", listed)}
    )


_ID: shapes.Fields = {"cache": ("cacheID", _CACHE_ID)}
_SPAN: shapes.Fields = {"span": ("range", _span)}
_SHARE: shapes.Fields = {"percent": ("percent", shapes.integer(1, 100))}
_RESCTRL = shapes.record(
    wishes.Resctrl,
    {
        "caches": (
            "llc",
            _both(shapes.record(_cache, _SPAN), shapes.record(_cache, {**_SPAN, **_ID})),
        ),
        "bandwidths": (
            "mb",
            _both(
                shapes.record(wishes.Bandwidth, _SHARE),
                shapes.record(wishes.Bandwidth, {**_SHARE, **_ID}),
            ),
        ),
    },
)


def decode(text: str, problems: list[str]) -> wishes.Resctrl:
    """The wish."""
    return _RESCTRL(shapes.parse(text), problems)
