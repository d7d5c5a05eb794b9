"""Who wins for each field of a pod that several sources know."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import cpuset, kubelet, pod, qos
from koordlet.workloads import merging


def pod_from(source: str, uid: str = "u", **fields: Any) -> pod.Pod:
    """A pod as a source tells it."""
    values: dict[str, Any] = {"namespace": "a", "name": uid, "qos": qos.Qos.LS, **fields}
    return pod.Pod(uid=uid, source=source, **values)


def answer(*pods: pod.Pod, fresh: bool = True) -> merging.Said:
    """An answer."""
    return merging.Said(pods=pods, fresh=fresh)


def test_the_kubelet_says_what_happens_and_the_api_server_what_is_wanted() -> None:
    """Phase and containers of the one, labels and class of the other."""
    running = (pod.Container(name="c", id="1", running=True),)
    runs = pod_from("kubelet", phase=pod.Phase.RUNNING, containers=running)
    wants = pod_from(
        "cluster", phase=pod.Phase.PENDING, qos=qos.Qos.BE, labels={"a": "b"}, deleting=5.0
    )
    (merged,) = merging.merge(answer(runs), answer(wants))

    assert (pod.Phase.RUNNING, running) == (merged.phase, merged.containers)
    assert (merged.qos, merged.labels, merged.deleting) == (qos.Qos.BE, {"a": "b"}, 5.0)
    assert not merged.stale


def test_an_api_server_that_is_not_believed_any_more_loses() -> None:
    """The kubelet's copy is at least as new."""
    (merged,) = merging.merge(
        answer(pod_from("kubelet")), answer(pod_from("cluster", qos=qos.Qos.BE), fresh=False)
    )

    assert (merged.qos, merged.stale) == (qos.Qos.LS, False)


@pytest.mark.parametrize(
    ("runs_fresh", "phase", "stale"),
    [
        (True, pod.Phase.PENDING, False),
        (True, pod.Phase.RUNNING, True),
        (False, pod.Phase.RUNNING, False),
    ],
)
def test_a_pod_that_the_kubelet_does_not_list(
    runs_fresh: object, phase: pod.Phase, stale: object
) -> None:
    """It counts; but one that ran before is stale, because a kubelet that starts lists nobody."""
    wants = answer(pod_from("cluster", phase=phase))
    (listed,) = merging.merge(answer(fresh=bool(runs_fresh)), wants)

    assert listed.stale is bool(stale)


def test_a_pod_that_began_to_run_after_the_kubelet_was_asked_counts() -> None:
    """Its absence from an older list says nothing; one that ran before that list is stale."""
    pods = (pod_from("cluster", uid, phase=pod.Phase.RUNNING) for uid in ("new", "old"))
    wants = merging.Said(pods=tuple(pods), fresh=True, begun=frozenset({"new"}))
    merged = merging.merge(answer(), wants)

    assert [(listed.uid, listed.stale) for listed in merged] == [("new", False), ("old", True)]


@pytest.mark.parametrize("phase", [pod.Phase.RUNNING, pod.Phase.PENDING])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_pod_that_says_that_it_is_another(phase: pod.Phase, fresh: object) -> None:
    """Whoever mirrors somebody else's UID decides nothing about him, and gets nothing of his."""
    asked: dict[str, Any] = {"qos": qos.Qos.BE, "phase": phase, "static": True, "name": "false"}
    true, false = pod_from("cluster", qos=qos.Qos.LSR), pod_from("cluster", **asked)
    kubelets = answer(pod_from("kubelet", qos=qos.Qos.LSR), fresh=bool(fresh))

    for wants in (answer(true, false), answer(false, true), answer(false)):
        (merged,) = merging.merge(kubelets, wants)
        assert (merged.name, merged.qos) == ("u", qos.Qos.LSR)
    for wants in (answer(true, false), answer(false, true)):
        (merged,) = merging.merge(None, wants)
        assert (merged.name, merged.qos) == ("u", qos.Qos.LSR)


def test_pods_that_nobody_vouches_for_are_stale_and_stay() -> None:
    """Whatever sources there are."""
    old = answer(pod_from("kubelet"), fresh=False)

    assert [each.stale for each in merging.merge(old, None)] == [True]
    assert [each.stale for each in merging.merge(None, old)] == [True]
    assert [
        each.stale for each in merging.merge(old, answer(pod_from("cluster"), fresh=False))
    ] == [True]
    assert merging.merge(None, None) == ()


def test_pods_that_have_ended_are_left_out() -> None:
    """They hold nothing."""
    assert merging.merge(answer(pod_from("kubelet", phase=pod.Phase.FAILED)), None) == ()


@pytest.mark.parametrize(
    ("fields", "cpus", "owned"),
    [
        ({}, "4-5", True),
        ({"cpus": cpuset.CPUSet.parse("0")}, "0", False),
        ({"raw_qos": qos.Qos.LS}, None, False),
        ({"uid": "other"}, None, False),
    ],
)
def test_cpus_that_the_kubelet_holds(
    fields: dict[str, Any], cpus: str | None, owned: object
) -> None:
    """They are the pod's, unless a scheduler or its label says otherwise."""
    held = kubelet.CpuState(policy="static", entries={"u": {"c": cpuset.CPUSet.parse("4-5")}})
    (merged,) = merging.merge(answer(pod_from("kubelet", **fields)), None, held)

    assert cpus == (None if merged.cpus is None else str(merged.cpus))
    assert owned is merged.kubelet_owned
