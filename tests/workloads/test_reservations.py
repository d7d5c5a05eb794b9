"""What a node knows of a reservation."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import reservation
from koordlet.workloads import reservations


def test_a_reservation() -> None:
    """Name, phase and node; its owners as they are."""
    owner = {"labelSelector": {"matchLabels": {"app": "web"}}}
    found = reservations.decode(
        {
            "metadata": {"name": "spare", "uid": "u1"},
            "spec": {"owners": [owner]},
            "status": {"nodeName": "n1", "phase": "Available"},
        }
    )

    assert found == reservation.Reservation(
        name="spare", uid="u1", phase="Available", node="n1", owners=(owner,)
    )


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"spec": None, "status": []},
        {"spec": {"owners": {}}, "status": {"phase": 3}},
        {"spec": {"owners": ["all", None]}, "status": {"nodeName": {}}},
    ],
)
def test_parts_of_a_wrong_type(rest: dict[str, Any]) -> None:
    """They are as if they were not there."""
    assert reservations.decode({"metadata": {"name": "r"}, **rest}) == reservation.Reservation(
        name="r"
    )
