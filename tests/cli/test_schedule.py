"""What ``koordlet schedule`` says of objects that were not taken in."""

from __future__ import annotations

from koordlet.cli import schedule
from koordlet.rpc import placing


def test_an_object_without_a_name() -> None:
    """It is known by its place in what was given, and by its kind where it has one."""
    none = placing.Taken(kind="", namespace="", name="", uid="", error="the object has no name")
    good = placing.Taken(kind="Pod", namespace="d", name="a", uid="1", error="")
    again = placing.Taken(kind="Pod", namespace="d", name="b", uid="", error="it already exists")
    refused = schedule.refused([good, none, again, none], [{}, {"kind": "Pod"}, {}, {}])

    assert [(refusal["kind"], refusal["name"]) for refusal in refused] == [
        ("Pod", "(object 2)"),
        ("Pod", "d/b"),
        ("?", "(object 4)"),
    ]
