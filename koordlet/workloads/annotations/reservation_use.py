"""``reservation-allocated``: the reservation that a pod was placed in."""

from __future__ import annotations

from koordlet.model import wishes
from koordlet.workloads import shapes

KEY = "scheduling.koordinator.sh/reservation-allocated"

_USE = shapes.record(
    wishes.ReservationUse, {"name": ("name", shapes.text), "uid": ("uid", shapes.text)}
)


def decode(text: str, problems: list[str]) -> wishes.ReservationUse:
    """Name and UID of the reservation."""
    return _USE(shapes.parse(text), problems)
