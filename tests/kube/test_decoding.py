"""Lines of a watch as they come in pieces, and what is no answer of an API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.kube import decoding
from koordlet.kubeapi import objects, refusals


def test_lines_are_whole_however_they_are_cut() -> None:
    """Empty ones keep a connection alive; what follows the last end waits for its own."""
    lines = decoding.Lines("/api/v1/pods")
    assert list(lines.feed(b'{"a":')) == []
    assert list(lines.feed(b'1}\n\n{"b":2}\n{"c"')) == [b'{"a":1}', b'{"b":2}']
    assert list(lines.feed(b":3}\n")) == [b'{"c":3}']


def test_a_line_without_end_is_refused_with_what_to_do() -> None:
    """A whole line of any length is read: what would grow for ever is one that does not end."""
    lines = decoding.Lines("/api/v1/pods", most=1 << 20)
    with pytest.raises(refusals.Garbled, match="a watch event exceeds 1 MiB") as refused:
        list(lines.feed(b"x" * (1 << 20) + b"y"))
    assert refused.value.culprit == "/api/v1/pods"
    assert "whether a proxy is in between" in refused.value.fix


def change(**event: Any) -> objects.Change:
    """One line as an object."""
    return decoding.change(json.dumps(event).encode(), "/api/v1/pods", decoding.RepairLog())


def test_a_change_has_its_verb_its_object_and_its_revision() -> None:
    """Of a bookmark only the revision counts."""
    body = {"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "7"}}
    assert change(type="ADDED", object=body) == objects.Change(objects.Verb.ADDED, body, "7")
    assert change(type="BOOKMARK", object=body) == objects.Change(objects.Verb.BOOKMARK, {}, "7")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "NEWS", "object": {}}, "not one of an API server"),
        ({"type": "ADDED", "object": []}, "not one of an API server"),
        ({"type": "ADDED", "object": {"metadata": {}}}, "no resourceVersion"),
    ],
)
def test_an_event_that_is_none_is_garbled(event: dict[str, Any], words: str) -> None:
    """Whoever answers so is no API server, or a proxy is in between."""
    with pytest.raises(refusals.Garbled, match=words):
        change(**event)


def test_an_error_in_a_watch_is_what_it_says() -> None:
    """410: the revision is too old."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    with pytest.raises(refusals.Gone, match="too old"):
        change(type="ERROR", object=status)
