"""Events as an API server takes them, whatever pods are called."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import labels
from koordlet.scheduler.loop import event_messages
from koordlet.scheduler.loop.event_messages import EventBuilder, EventMessage
from koordlet.scheduler.loop.outcomes import Refusal
from koordlet.scheduler.objects.decoder import Decoder
from tests.kit import clusters


@pytest.mark.parametrize("cut", ["-", ".", "x"])
def test_an_event_about_a_pod_with_a_long_name_has_a_name_that_is_taken(cut: str) -> None:
    """The pod's is cut, and no part of a name ends in a dash."""
    name = "a" * 199 + cut + "b" * 40
    pod = Decoder({}).decode(clusters.pod(name), 0)
    body = EventBuilder("test", lambda: 0.0).event(
        EventMessage(pod, "FailedScheduling", "Scheduling", "no room")
    )

    assert labels.is_subdomain(body["metadata"]["name"])


def test_events_name_every_victim_of_an_owner_however_many_there_are() -> None:
    """No note is cut where a name would be lost with it; one victim has an event as ever."""
    decoder = Decoder({})
    by = Refusal(decoder.decode(clusters.pod("high", meta={"uid": "u" * 36}), 0), "", node="n")
    victims = [decoder.decode(clusters.pod(f"low-{number}.", on="n"), 0) for number in range(100)]
    together = event_messages.preempted_together
    notes = [*together("ReplicaSet", "web", [(victim, by) for victim in victims])]

    assert max(len(note.text) for note in notes) <= 1024
    assert len(notes) < 10
    for victim in victims:
        assert sum(f"{victim.name} by pod {'u' * 36} on node n" in note.text for note in notes) == 1
    assert {note.regarding for note in notes} == {
        event_messages.Regarding(kind="ReplicaSet", name="web")
    }
    assert [*together("ReplicaSet", "web", [(victims[0], by)])] == [
        event_messages.preempted(victims[0], by)
    ]


def test_a_group_of_any_name_costs_no_victim_its_name() -> None:
    """The API server counts bytes, and an annotation that names a gang may hold any letters."""
    decoder = Decoder({})
    high = decoder.decode(clusters.pod("high"), 0)
    by = Refusal(high, "", node="n", group="d/größenänderung-für-übermorgen")
    victims = [decoder.decode(clusters.pod(f"low-{number}.", on="n"), 0) for number in range(40)]
    several = [(victim, by) for victim in victims]
    notes = [*event_messages.preempted_together("ReplicaSet", "web", several)]

    assert max(len(note.text.encode()) for note in notes) <= 1024
