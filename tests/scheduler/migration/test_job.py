"""PodMigrationJobs as objects: what is read, what is made."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import moment
from koordlet.report.crds import definitions
from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.migration import cleanup, job
from koordlet.scheduler.migration.job import Phase, PodRef
from tests.kit import structural

REF = PodRef("shop", "web-1", "u-1")


def body(**spec: Any) -> dict[str, Any]:
    """A job of pod web-1."""
    pod = {"namespace": "shop", "name": "web-1"}
    return {"metadata": {"name": "j", "uid": "j-1"}, "spec": {"podRef": pod, **spec}}


def test_a_new_job_reads_as_it_was_meant() -> None:
    """All that is asked for, under the peer's names; the definition takes it."""
    made = job.request(
        REF, ttl_seconds=300, reason="hot", by="descheduler/X", policy="Delete", grace_seconds=5,
        node="n2", avoid_seconds=5400,
    )  # fmt: skip
    known = job.decode({**made, "metadata": {**made["metadata"], "name": "web-1-abc"}})
    assert (known.pod, known.mode, known.ttl) == (REF, "ReservationFirst", 300.0)
    assert (known.reason, known.by, known.policy) == ("hot", "descheduler/X", "Delete")
    assert (known.grace_seconds, known.avoid_seconds) == (5, 5400.0)
    assert known.template["spec"]["template"]["spec"]["nodeName"] == "n2"
    assert made["metadata"]["annotations"]["koordinator.sh/evict-trigger"] == "descheduler/X"


def test_a_job_of_a_peer_is_read_with_its_defaults() -> None:
    """No ttl waits for ever; nothing said of the mode means that room is held first."""
    known = job.decode(body())
    assert (known.ttl, known.mode, known.by) == (None, "ReservationFirst", "migrate")
    assert (known.status.phase, known.avoid_seconds) == (Phase.PENDING, None)
    assert job.decode(body(ttl="0s")).ttl is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"mode": "Sideways"}, "spec.mode 'Sideways' is none of"),
        ({"ttl": "soon"}, "spec.ttl"),
        ({"podRef": "web-1"}, "podRef is not an object"),
        ({"paused": "yes"}, "paused is neither true nor false"),
    ],
)
def test_a_job_that_cannot_be_read_says_which_field(spec: dict[str, Any], words: str) -> None:
    """It is a job all the same: its status will tell."""
    known = job.read(body(**spec))
    assert words in known.fault
    assert (known.name, known.active) == ("j", True)


def test_a_job_that_cannot_be_read_keeps_its_age_and_what_was_done_for_it() -> None:
    """Its failure stays for whoever asks, and the room of a pod that it evicted stays held."""
    eviction = {"type": "Eviction", "status": "True", "reason": "EvictComplete"}
    made = body(ttl="soon")
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    made["status"] = {"phase": "Failed", "message": "why", "conditions": [eviction]}
    known, now = job.read(made), moment.parse("2026-01-01T01:00:00Z")
    assert (known.status.message, cleanup.has_evicted(known)) == ("why", True)
    assert list(cleanup.forgotten([known], now)) == []


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_job_whose_conditions_cannot_be_read_is_over_all_the_same(phase: str) -> None:
    """Nothing is done for it again."""
    made = body() | {"status": {"phase": phase, "conditions": "none"}}
    assert job.read(made).status.phase == phase


def test_a_time_that_a_job_cannot_mean_is_named() -> None:
    """Of an annotation as of a field."""
    made = body()
    made["metadata"]["annotations"] = {job.AVOID: "long"}
    assert f"annotation {job.AVOID}" in job.read(made).fault


def test_a_job_that_names_no_policy_there_is_says_so() -> None:
    """Who misspells the one that leaves the pod to others wants no eviction."""
    made = body()
    made["metadata"]["labels"] = {traits.POLICY: "SoftEvict"}
    fault = "label koordinator.sh/evict-policy 'SoftEvict' is none of"
    assert job.read(made).fault == f"{fault} Eviction, Delete, SoftEviction"


def test_the_definition_has_the_columns_of_the_peer() -> None:
    """In the same order; and it prunes nothing that is written here."""
    definition = definitions.find("podmigrationjobs")
    document = definitions.document(definition)
    (version,) = document["spec"]["versions"]
    names = [column["name"] for column in version["additionalPrinterColumns"]]
    assert names == ["Phase", "Status", "Age", "Node", "Reservation", "PodNamespace", "Pod",
                     "NewPod", "TTL"]  # fmt: skip
    assert document["spec"]["names"]["shortNames"] == ["pmj"]
    status = {key: value for key, value in job.JobStatus(node="n2").body().items() if value}
    written = {"spec": job.request(REF, node="n2")["spec"], "status": status}
    assert structural.pruned(version["schema"]["openAPIV3Schema"], written) == written
