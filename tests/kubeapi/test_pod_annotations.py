"""Annotations and objects of pods are read once: agent and scheduler say the same of them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.kubeapi import classes, pod_annotations
from koordlet.model import pod, qos
from koordlet.policy.cpu import accumulator, requests
from koordlet.scheduler.objects import requests as scheduler_requests
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod, Priority
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import numa
from koordlet.workloads import poddecode
from tests.kit import moments, pods

EXTENDED = {"containers": {"nginx": {"requests": {"kubernetes.io/batch-cpu": "700"}}}}
NOTES: dict[str, Any] = {
    pod_annotations.RESOURCE_SPEC: {
        "requiredCPUBindPolicy": "Default",
        "PreferredCPUBindPolicy": "SpreadByPCPUs",
        "preferredCPUExclusivePolicy": "PCPULevel",
    },
    pod_annotations.NUMA_SPEC: {"numaTopologyPolicy": "Restricted"},
    pod_annotations.RESOURCE_STATUS: {
        "cpuset": "0-1",
        "numaNodeResources": [{"node": 0, "resources": {"cpu": "2", "memory": "1Gi"}}],
    },
    pod_annotations.EXTENDED_RESOURCES: EXTENDED,
}


def annotated(notes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """An LSR pod that asks for two CPUs."""
    body = pods.pod(**changes)
    body["metadata"]["labels"] = {"koordinator.sh/qosClass": "LSR"}
    body["metadata"]["annotations"] = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in notes.items()
    }
    amounts = {"cpu": "2", "memory": "1Gi"}
    body["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": dict(amounts)}
    return body


def both(body: dict[str, Any]) -> tuple[pod.Pod, Pod]:
    """The pod as the agent and as a scheduler know it."""
    ours = poddecode.from_object(copy.deepcopy(body), poddecode.CLUSTER, "here")
    decoder = Decoder({"koord-prod": Priority(9100, preempts=True, default=False)})
    try:
        theirs = decoder.decode(body, 0)
    except BadObjectError as error:
        theirs = decoder.unreadable(body, str(error))
    return ours, theirs


def same(body: dict[str, Any]) -> None:
    """Amounts, CPUs, bind policy, QoS, band and identity."""
    ours, theirs = both(body)
    most = scheduler_requests.MOST_REQUEST
    assert {n: a for n, a in theirs.pod_class.requests.real.items() if a} == {
        name: min(amount, most) for name, amount in ours.requests.items() if amount
    }
    assert (theirs.namespace, theirs.name) == (ours.namespace, ours.name)
    assert theirs.cpus == (ours.cpus or None)
    if theirs.pod_class.unsupported.startswith("rejected"):
        return
    request = numa.NodeNUMAResource({}).request(theirs.pod_class)
    binding = ours.wishes.binding
    name, required = binding.policy if binding is not None else ("", False)
    exclusive = ours.raw_qos is not None and ours.raw_qos.exclusive
    band = ours.band or qos.Band.default_of(ours.qos)
    assert theirs.pod_class.band == band.label
    assert request.exclusive is requests.exclusive(ours)
    wished = ours.wishes.numa.policy if ours.wishes.numa is not None else None
    assert request.numa == (wished or "")
    bound = exclusive and band is qos.Band.PROD and name != "ConstrainedBurst"
    assert request.bound == (bound and request.cpu > 0)
    if name in ("FullPCPUs", "SpreadByPCPUs"):
        assert request.preferred is accumulator.Bind(name)
        assert request.required is (accumulator.Bind(name) if required else None)
    known = classes.raw_qos(theirs.pod_class.labels, [])
    assert known is ours.raw_qos


@pytest.mark.parametrize(
    ("notes", "policy"),
    [
        ({"PreferredCPUBindPolicy": "SpreadByPCPUs"}, accumulator.Bind.SPREAD),
        ({"PREFERREDCPUBINDPOLICY": "SpreadByPCPUs"}, accumulator.Bind.SPREAD),
        ({"requiredCPUBindPolicy": "Default"}, accumulator.Bind.FULL_CORES),
        ({"preferredCPUBindPolicy": "Nonsense"}, accumulator.Bind.FULL_CORES),
        ({"preferredCPUBindPolicy": 5}, accumulator.Bind.FULL_CORES),
    ],
)
def test_the_case_of_a_key_means_nothing_and_an_unknown_word_is_not_said(
    notes: dict[str, Any], policy: accumulator.Bind
) -> None:
    """Go reads keys without regard to case; both bind the pod, in the same way."""
    body = annotated({pod_annotations.RESOURCE_SPEC: notes})
    ours, theirs = both(body)
    asked = requests.ask(ours, {})

    assert asked is not None
    assert not isinstance(asked, requests.Problem)
    assert asked.cpus.bind is policy
    request = numa.NodeNUMAResource({}).request(theirs.pod_class)
    assert (request.bound, request.preferred) == (True, policy)


def test_a_default_that_is_required_leaves_the_word_to_the_preferred_policy() -> None:
    """It is then preferred, not required, by both."""
    same(annotated(NOTES))
    _, theirs = both(annotated(NOTES))
    request = numa.NodeNUMAResource({}).request(theirs.pod_class)
    assert (request.required, request.preferred) == (None, accumulator.Bind.SPREAD)


@pytest.mark.parametrize(
    ("priority", "label"), [(100, ""), (9100, "koord-nonsense"), (None, ""), (0, "")]
)
def test_a_band_that_is_none_is_the_default_of_the_class(priority: int | None, label: str) -> None:
    """The CPUs that a scheduler gives to such an LSR pod are believed by the agent."""
    body = annotated(NOTES, spec__priority=priority, spec__priorityClassName=None)
    body["metadata"]["labels"]["koordinator.sh/priority-class"] = label
    ours, theirs = both(body)

    assert theirs.pod_class.band == "koord-prod"
    assert requests.disbelieved(ours, moments.moment(moments.machine())) == ""


def test_amounts_count_for_both_however_they_are_named_and_whatever_is_beside_them() -> None:
    """Older names, extended resources of an annotation, a bad amount beside a good one."""
    body = annotated({pod_annotations.EXTENDED_RESOURCES: EXTENDED})
    listed = body["spec"]["containers"][0]["resources"]
    listed["requests"] |= {"koordinator.sh/batch-memory": "5", "example.com/x": "lots"}
    ours, theirs = both(body)

    expected = {"kubernetes.io/batch-cpu": 700, "kubernetes.io/batch-memory": 5, "cpu": 2000}
    for amounts in (ours.requests, theirs.pod_class.requests.real):
        assert expected.items() <= amounts.items()
    assert "example.com/x" in theirs.pod_class.unsupported


def test_pod_level_limits_ask_for_what_no_container_asks_for() -> None:
    """As the API server fills requests in."""
    body = annotated({})
    body["spec"]["resources"] = {"limits": {"cpu": "6", "hugepages-2Mi": "4Mi"}}
    ours, theirs = both(body)

    assert ours.requests["cpu"] == theirs.pod_class.requests.real["cpu"] == 2000
    assert theirs.pod_class.requests.real["hugepages-2Mi"] == ours.requests["hugepages-2Mi"]


@given(
    notes=st.fixed_dictionaries(
        {}, optional={key: pods.broken(GOOD) for key, GOOD in NOTES.items()}
    ),
    upper=st.booleans(),
)
def test_whatever_an_annotation_says_both_say_the_same(notes: dict[str, Any], upper: bool) -> None:
    """Any JSON in any of the annotations, with keys of another case."""
    if upper:
        notes = {
            key: {str(name).upper(): part for name, part in value.items()}
            if isinstance(value, dict)
            else value
            for key, value in notes.items()
        }
    same(annotated(notes))


#: What is not in question: who it is, and where.
_KEPT = ("name", "namespace", "uid")


@given(body=pods.broken(annotated(NOTES)))
def test_whatever_is_wrong_with_a_pod_both_say_the_same(body: dict[str, Any]) -> None:
    """Up to three parts replaced by any JSON.

    Its name and its node stay; only the agent believes the class that a status says.
    """
    whole = annotated(NOTES)
    for part in ("metadata", "spec", "status"):
        if not isinstance(body.get(part), dict):
            body[part] = whole[part]
    body["metadata"] |= {key: whole["metadata"][key] for key in _KEPT}
    body["spec"] |= {"nodeName": "n1", "priorityClassName": None}
    body["status"].pop("qosClass", None)
    body["metadata"].pop("annotations", None)
    same(body)
