"""``networkQOS``: a pod's own bandwidth limits, as quantities of bits per second."""

from __future__ import annotations

from koordlet.model import wishes
from koordlet.workloads import shapes

KEY = "koordinator.sh/networkQOS"

_NETWORK = shapes.record(
    wishes.Network,
    {"ingress": ("ingressLimit", shapes.units), "egress": ("egressLimit", shapes.units)},
)


def decode(text: str, problems: list[str]) -> wishes.Network:
    """The limits."""
    return _NETWORK(shapes.parse(text), problems)
