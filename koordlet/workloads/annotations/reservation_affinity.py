"""``reservation-affinity``: the reservations that a pod asks for, by name or by label.

Of the selector's terms the agent reads the plain ``reservationSelector``; the expressions of
``requiredDuringSchedulingIgnoredDuringExecution`` are the scheduler's business and are let pass.
"""

from __future__ import annotations

from koordlet.model import wishes
from koordlet.workloads import shapes

KEY = "scheduling.koordinator.sh/reservation-affinity"


def _ignored(value: object, problems: list[str]) -> None:
    del value, problems


def _affinity(
    *,
    name: str | None = None,
    selector: dict[str, str] | None = None,
    rest: None = None,
    tolerations: None = None,
) -> wishes.ReservationAffinity:
    del rest, tolerations
    return wishes.ReservationAffinity(name=name, selector=selector or {})


_AFFINITY = shapes.record(
    _affinity,
    {
        "name": ("name", shapes.text),
        "selector": ("reservationSelector", shapes.table(shapes.text)),
        "rest": ("requiredDuringSchedulingIgnoredDuringExecution", _ignored),
        "tolerations": ("tolerations", _ignored),
    },
)


def decode(text: str, problems: list[str]) -> wishes.ReservationAffinity:
    """The wish."""
    return _AFFINITY(shapes.parse(text), problems)
