"""Events as an API server takes them, whatever pods are called."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import labels
from koordlet.scheduler.loop.event_messages import EventBuilder, EventMessage
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
