"""Records say what their models said: in a file's words, and on the other side of a pipe."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from koordlet.config import plain, schema

WORK: list[dict[str, object]] = [
    {"name": "one", "qos": "LS", "match": {"unit": "a.service"}, "addresses": ["10.0.0.1"]},
    {"name": "two", "qos": "LSR", "cpus": 2, "match": {"cgroup": "a/b"}, "limits": {"cpu": 1}},
]
SAID: dict[str, object] = {
    "node": {"labels": {"a": "b", "kind": "0", "": ""}},
    "workloads": WORK,
    "policies": {"node_pressure": {"evictionHard": {"memory.available": "1Gi"}}},
}


@pytest.mark.parametrize("document", [{}, SAID])
def test_as_in_the_file(document: dict[str, object]) -> None:
    """The same keys and values as pydantic prints of the models."""
    model = schema.Config.model_validate(document)

    assert model.model_dump(mode="json", by_alias=True) == plain.document(model.record())


@pytest.mark.parametrize("document", [{}, SAID])
def test_through_a_pipe(document: dict[str, object]) -> None:
    """What was packed, printed and read is equal, of the same kinds, and cannot be told apart."""
    record = schema.Config.model_validate(document).record()

    again = plain.unpacked(json.loads(json.dumps(plain.packed(record))))

    assert again == record
    assert repr(record) == repr(again)
    assert type(record) is type(again)


def test_another_value() -> None:
    """One value makes the difference, however deep."""
    first, other = (
        schema.Config.model_validate({"workloads": [{**work, "priority": priority}]}).record()
        for work in WORK[:1]
        for priority in (1, 2)
    )

    assert first != other
    assert first != {}


def test_as_its_model() -> None:
    """Every attribute of a model is one of its record; lists are tuples there."""
    model = schema.Config.model_validate(SAID)
    record: Any = model.record()

    assert set(schema.Config.model_fields) == set(record.names)
    assert record.workloads[0].addresses == ("10.0.0.1",)
    assert model.workloads[1].match.values() == record.workloads[1].match.values()
    assert record.workloads[1].match.values() == {"unit": None, "cgroup": "a/b"}


def test_frozen() -> None:
    """Nothing is set in place, and nothing with maps in it has a hash."""
    record = schema.defaults()

    with pytest.raises(AttributeError, match="mode"):
        record.mode = "observe"
    with pytest.raises(TypeError, match="no hash"):
        hash(record)


def test_changes() -> None:
    """Each field that differs is named once, a map as a whole, with what waits for a restart."""
    changed = {"mode": "observe", "node": {"labels": {"a": "b"}}, "kube": {"context": "c"}}
    old, new = (schema.Config.model_validate(document).record() for document in ({}, changed))

    assert list(plain.changes(old, new)) == [
        ("mode", False),
        ("node.labels", False),
        ("kube.context", True),
    ]


def test_a_value_is_changed_where_the_file_has_it() -> None:
    """Everything beside it stays, and so does the section that it was made of."""
    before = schema.defaults()
    after = plain.changed(cast("plain.Section", before), ["report", "http", "enabled"], value=False)

    assert [*plain.changes(cast("plain.Section", before), after)] == [("report.http.enabled", True)]
    assert (before.report.http.enabled, after.values()["report"].http.enabled) == (True, False)
