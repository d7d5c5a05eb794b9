"""Profiles in a simulation draw as they do where pods are admitted."""

from __future__ import annotations

from koordlet.scheduler.colocation import review
from koordlet.scheduler.sim.colocation import SimulatedColocation
from tests.kit import clusters

HALF = {
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "half"},
    "spec": {"probability": "50%", "labels": {"drawn": "yes"}},
}
SPACE = {"kind": "Namespace", "metadata": {"name": "d"}}


def test_a_pod_is_drawn_by_its_name_and_not_by_the_uid_that_it_has_got_since() -> None:
    """Of a dump of pods the same are changed as when a webhook saw them without UIDs."""
    simulated = SimulatedColocation([SPACE], [HALF])
    for number in range(20):
        simulated(clusters.pod(f"p{number}", meta={"uid": f"u{number}"}))
    drawn = [each["pod"] for each in simulated.changed]
    admitted = [
        f"d/p{number}"
        for number in range(20)
        if simulated.profiles[0].selects(
            clusters.pod(f"p{number}"),
            {},
            review.identity({"namespace": "d"}, clusters.pod(f"p{number}")),
        )
    ]
    assert drawn == admitted
    assert 3 < len(drawn) < 17
