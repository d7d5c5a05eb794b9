"""The body of an Event: within what the API server accepts, whatever the texts are."""

from __future__ import annotations

from koordlet.kubeapi import event, kinds


def told(**changes: str) -> event.Event:
    """Something that happened to a pod."""
    named = {"name": "web", "message": "it happened", **changes}
    return event.Event(
        subject=event.Subject(kind=kinds.PODS, name=named["name"], namespace="shop", uid="uid-1"),
        name_suffix="0123",
        reason="Happened",
        action="Look",
        message=named["message"],
    )


def test_an_event_names_its_object() -> None:
    """Kind, name, namespace and UID of the object; the event lies beside it."""
    made = event.body(told(), "n1", 1e9)

    assert made["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "namespace": "shop",
        "uid": "uid-1",
    }
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("web.0123", "shop")
    assert made["eventTime"] == "2001-09-09T01:46:40.000000Z"


def test_an_event_on_something_without_a_namespace() -> None:
    """It lies in ``default``, and what is not known of the object is left out."""
    subject = event.Subject(kind=kinds.NODES, name="n1")
    made = event.body(
        event.Event(subject=subject, name_suffix="1", reason="R", action="A", message="n"),
        "n1",
        1e9,
    )

    assert made["metadata"]["namespace"] == "default"
    assert made["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


def test_limits_are_bytes() -> None:
    """A long note is cut between characters, a lone surrogate is no reason to fail, names fit."""
    made = event.body(told(name="x" * 253, message="\ud800" + "é" * 2000), "n" * 300, 1e9)

    assert len(made["note"].encode()) <= 1024
    assert made["note"].startswith("?é")
    assert len(made["metadata"]["name"]) <= 253
    assert len(made["reportingInstance"]) == 128
