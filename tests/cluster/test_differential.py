"""kube-scheduler and ours decide about the same pods of the same cluster, one at a time."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import simulation
from tests.cluster.fleet import Fleet, shared
from tests.cluster.fleet_store import key_of
from tests.cluster.kube_scheduler import (
    CONTROLLERS,
    KubeScheduler,
    Verdict,
    configuration,
    same_words,
)
from tests.kit import k8s_lab
from tests.oracle import comparing
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

#: Pods that are decided about in a cluster: in each run, and in the soak.
PODS, SOAK = 90, 200


def differences(verdict: Verdict) -> list[str]:
    """What ours says otherwise about this pod, in words."""
    bodies = [*verdict.world, {"kind": "Pod", **verdict.pod}]
    document = simulation.Simulation(inventory.load(bodies), None, scores=True).run().document()
    placements, pending, preemptions = comparing.compared(document)
    key = key_of(verdict.pod)
    if verdict.silent:
        return [] if key in pending else [f"{key}: nothing, ours {placements.get(key)}"]
    if not verdict.node:
        theirs = verdict.message
        ours = pending.get(key, f"placed on {placements.get(key, {}).get('node')}")
        return [] if same_words(theirs, ours) else [f"{key}: {theirs!r}, ours {ours!r}"]
    if key not in placements:
        return [f"{key}: on {verdict.node}, ours {pending.get(key)!r}"]
    return _otherwise(verdict, placements[key], preemptions.get(key, {}).get("victims", ()))


def _otherwise(verdict: Verdict, placement: Body, victims: Collection[str]) -> list[str]:
    """What ours says otherwise about the place of a pod that both have placed."""
    node, going = placement["node"], _ending(verdict.world)
    leaving = frozenset(victims) - going
    if verdict.victims or victims:
        if _is_miscounted(verdict, going):
            return []
        # Whoever goes already is not deleted again, and never goes here: kube-scheduler then tries
        # the pod anew before it has deleted all others.
        waits = not going.isdisjoint(victims)
        same = verdict.victims <= leaving if waits else verdict.victims == leaving
        if node == verdict.node and same:
            return []
        theirs = f"{key_of(verdict.pod)}: on {verdict.node} for {set(verdict.victims)}"
        return [f"{theirs}, ours {node} for {leaving}"]
    totals = verdict.totals or {verdict.node: 0}
    if totals.get(node) == max(totals.values()):
        return []
    best = [name for name, total in totals.items() if total == max(totals.values())]
    pairs = {name: (total, placement["scores"].get(name)) for name, total in totals.items()}
    apart = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return [f"{key_of(verdict.pod)}: the best of {best}, ours {node}; totals differ by {apart}"]


def _is_miscounted(verdict: Verdict, going: set[str]) -> bool:
    """Whether kube-scheduler has made room for it with counts that are too low.

    It takes whoever goes out of the counts of spreading, which never held that pod.
    """
    return "topologySpreadConstraints" in verdict.pod["spec"] and any(
        body["spec"].get("nodeName") == verdict.node
        for body in verdict.world
        if body["kind"] == "Pod"
        and key_of(body) in going
        and body["metadata"]["namespace"] == verdict.pod["metadata"]["namespace"]
    )


def _ending(world: list[Body]) -> set[str]:
    return {
        key_of(body)
        for body in world
        if body["kind"] == "Pod" and "deletionTimestamp" in body["metadata"]
    }


@pytest.fixture(scope="module", name="lab")
def made_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A control plane for all fleets, one after the other, with what every fleet shares."""
    folder = tmp_path_factory.mktemp("lab")
    arguments = {
        "kube-scheduler": configuration(folder),
        "kube-controller-manager": [CONTROLLERS],
    }
    with (
        k8s_lab.cluster(folder, scheduler=True, nodes=1, args=arguments) as lab,
        contextlib.closing(k8s_lab.Admin(lab)) as admin,
    ):
        for path, bodies in shared().items():
            for body in bodies:
                admin.need("POST", path, body)
        yield lab


def run(
    lab: Any, seed: int, nodes: int, *, calm: bool, pods: int = PODS
) -> collections.Counter[str]:
    """Verdicts about one cluster, counted by kind; fails with every difference."""
    fleet, wrong = Fleet(seed, calm=calm), []
    counts: collections.Counter[str] = collections.Counter()
    with contextlib.closing(KubeScheduler(lab)) as kube:
        kube.furnish(fleet, nodes)
        while counts.total() < pods:
            verdict = kube.decide(fleet.pod())
            if verdict is None:
                continue
            kind = "made room" if verdict.victims else "placed" if verdict.node else "refused"
            counts[kind] += 1
            wrong += differences(verdict)
    assert not wrong, "\n".join([f"seed {seed}, {counts}: {len(wrong)} differ", *wrong])
    return counts


def test_ours_places_as_kube_scheduler(lab: Any) -> None:
    """Where there is room for all, ours is among the best of its totals, pod by pod."""
    counts = run(lab, 1, 200, calm=True)

    assert counts["placed"] > PODS // 2
    assert counts["refused"] > 0


def test_ours_makes_room_as_kube_scheduler(lab: Any) -> None:
    """Where room is short, the verdict, its message, and who goes are the same, pod by pod."""
    counts = run(lab, 2, 25, calm=False)

    assert counts["made room"] > 0
    assert counts["refused"] > counts["placed"] // 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_a_soak_of_verdicts(lab: Any, seed: int) -> None:
    """The same, on many clusters of both kinds: 20 000 pods."""
    calm = seed % 2 == 0
    run(lab, seed, 200 if calm else 25, calm=calm, pods=SOAK)
