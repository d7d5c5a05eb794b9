"""Who shares cores with whom, by the peer's labels and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import action, cookies, decision, nodeslo, pod, strategies, wishes
from koordlet.model.qos import KubeQos, Qos
from koordlet.policy.cpu import core_scheduling as policy
from tests.kit import colocation, moments

TWO = moments.machine(1, 2)
LS = colocation.kube("web", KubeQos.BURSTABLE, Qos.LS)
BE = colocation.kube("job", KubeQos.BEST_EFFORT, Qos.BE)


def asking(workload: pod.Pod, group: str | None = None, how: str | None = None) -> pod.Pod:
    """With labels."""
    sharing = wishes.CoreSharing(group=group, policy=how)
    return replace(workload, wishes=wishes.Wishes(core_sharing=sharing))


def decide(
    *pods: pod.Pod,
    why: str = "",
    slo: nodeslo.NodeSlo | None = None,
    classes: frozenset[str] = policy.Settings().classes,
    more: Mapping[str, Mapping[int, int]] | None = None,
) -> decision.Decision[policy.State]:
    """Each pod's container has one process: 10, 20 and so on."""
    of = {
        workload.containers[0].group or "": {10 * number: 0}
        for number, workload in enumerate(pods, start=1)
    }
    seen = cookies.Cookies(why=why, of={} if why else of | dict(more or {}))
    now = replace(colocation.moment(TWO, pods), cookies=seen, slo=slo)
    return policy.decide(now, series.History(), policy.Settings(classes=classes), policy.State())


def shares(made: decision.Decision[policy.State]) -> dict[str, tuple[int, ...]]:
    """Name to processes."""
    return {
        share.target.removeprefix("/cores/"): share.members
        for share in made.actions
        if isinstance(share, action.ShareCore)
    }


def test_classes_are_kept_apart() -> None:
    """LSE, LSR and LS expel and share with each other; BE with BE."""
    lse = colocation.kube("own", KubeQos.GUARANTEED, Qos.LSE)
    assert shares(decide(LS, BE, lse)) == {"others-expeller": (10, 30), "others": (20,)}


def test_labels_of_the_peer() -> None:
    """Groups share across pods but not across expelling; exclusive is alone, none is nobody."""
    both = decide(asking(LS, "a"), asking(BE, "a"))
    assert shares(both) == {"group/a-expeller": (10,), "group/a": (20,)}
    assert shares(decide(asking(LS, "a", "exclusive"))) == {"pod/web-expeller": (10,)}
    assert shares(decide(asking(LS, "a", "none"))) == {}


def test_all_that_runs_inside_is_meant() -> None:
    """The sandbox, every container, and groups that a container makes."""
    group = LS.containers[0].group
    more = {f"{LS.group}/sandbox": {5: 0}, f"{group}/made": {6: 0, 7: 0}, "elsewhere": {8: 0}}
    assert shares(decide(LS, more=more)) == {"others-expeller": (5, 6, 7, 10)}


def test_who_has_a_cookie_and_should_not_is_named() -> None:
    """A pod that changed its mind; what has none is left alone."""
    other = {"elsewhere": {8: 77, 9: 0}}
    made = decide(LS, more=other)
    assert [share.strays for share in made.actions if isinstance(share, action.ShareCore)] == [(8,)]


@pytest.mark.parametrize(
    ("kube", "raw", "expected"),
    [
        (KubeQos.GUARANTEED, None, "others-expeller"),
        (KubeQos.BURSTABLE, None, "others-expeller"),
        (KubeQos.BEST_EFFORT, None, "others"),
        (KubeQos.BEST_EFFORT, Qos.SYSTEM, None),
    ],
)
def test_without_a_class(kube: KubeQos, raw: Qos | None, expected: str | None) -> None:
    """It follows the class of Kubernetes; system pods never take part."""
    shared = shares(decide(colocation.kube("a", kube, raw)))
    assert ([] if expected is None else [expected]) == list(shared)


def test_the_configuration_names_classes() -> None:
    """Who does not take part shares with everybody."""
    assert shares(decide(LS, BE, classes=frozenset({"BE"}))) == {"others": (20,)}


def slo(by: str, **classes: strategies.CpuQos) -> nodeslo.NodeSlo:
    """A NodeSLO with strategies of some classes."""
    made = {
        name: replace(of_class, cpu=classes.get(name, of_class.cpu))
        for name, of_class in nodeslo.DEFAULTS.classes.items()
    }
    return replace(nodeslo.DEFAULTS, source="cluster", cpu_policy=by, classes=made)


def test_a_node_slo_decides() -> None:
    """By ``coreSched``, the classes that it enables, and whether each expels."""
    on = strategies.CpuQos(enable=True, core_expeller=False)
    assert shares(decide(LS, BE, slo=slo("coreSched", LS=on))) == {"others": (10,)}
    assert shares(decide(LS, BE, slo=slo("groupIdentity", LS=on))) == {}
    assert shares(decide(LS, BE, slo=slo("coreSched"))) == {}


def test_what_this_machine_has_not_is_said_once() -> None:
    """To whom it may concern: nobody asked, nothing is said."""
    made = decide(LS, BE, why="no core of this machine has two threads")
    assert [condition.type for condition in made.conditions] == ["CoreSchedulingUnsupported"]
    assert all(word in made.conditions[0].message for word in (LS.key, BE.key, "two threads"))
    assert made.actions == ()
    assert decide(LS, why="x", classes=frozenset()).conditions == ()
