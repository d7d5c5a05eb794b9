"""Dry runs by sums say what the filters say, and what is remembered of them is never stale."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from koordlet.kubeapi import selectors
from koordlet.scheduler import framework
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import cycle, dryrun, profile
from koordlet.scheduler.objects import disruption
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters
from tests.oracle.clusters import Maker

CLUSTERS = 6


class Found(NamedTuple):
    """What is compared of a dry run: reasons, or victims and budgets."""

    reasons: tuple[str, ...]
    victims: tuple[str, ...]
    violations: int


def _compared(verdict: dryrun.Tried) -> Found:
    if isinstance(verdict, dryrun.Candidate):
        return Found((), tuple(victim.key for victim in verdict.victims), verdict.violations)
    return Found(verdict.reasons, (), 0)


def _hold(scheduling: cycle.Cycle, pod: Pod, budgets: list[disruption.DisruptionBudget]) -> int:
    """Both say the same of each node; how many were candidates."""
    protection, columns = disruption.Protection(budgets), scheduling.columns
    candidates = 0
    with scheduling.sight(pod) as view:
        if view.refused is not None:
            return 0
        runs = dryrun.DryRuns(columns, view, pod, protection, scheduling.dry_runs)
        for row in columns.rows.values():
            (mine,) = runs.each([row], {})
            plain = dryrun.in_columns(columns, view, pod, row, protection)
            assert _compared(mine) == _compared(plain), (pod.key, row)
            candidates += isinstance(mine, dryrun.Candidate)
    return candidates


def test_sums_say_what_the_filters_say() -> None:
    """On random clusters, also after pods left, or came under a budget."""
    candidates = 0
    for seed in range(CLUSTERS):
        loaded = inventory.load(Maker(seed).bodies())
        scheduling = cycle.Cycle(loaded.columns, profile.default())
        tried = [each for each in loaded.pending if not each.gates]
        for each in tried:
            each.priority += 7
            candidates += _hold(scheduling, each, loaded.budgets)
        for several in loaded.columns.pods:
            for each in list(several.values())[:1]:
                loaded.columns.remove(each)
        for each in tried:
            candidates += _hold(scheduling, each, [])
            candidates += _hold(scheduling, each, loaded.budgets)
    assert candidates > CLUSTERS


def test_where_amounts_decide_a_guest_touches_no_node() -> None:
    """What was remembered of the node before still holds afterwards."""
    small = _small("a", "b", "c", tried=("guest", "late"))
    columns, (guest, late) = small.scheduling.columns, small.tried
    looks, fit = list(columns.looks), "NodeResourcesFit"
    verdict = small.scheduling.beside(late, 0, [guest])
    assert verdict == framework.Verdict(("Insufficient cpu",), resolvable=True, plugin=fit)
    assert columns.looks == looks


def test_a_promised_node_is_remembered_while_its_pods_and_guests_are_the_same() -> None:
    """Whoever comes next is told without a look at the node, and of no other moment's room."""
    small = _small("a", "b", "c", tried=("guest", "other", "late"))
    cycled, (guest, other, late) = small.scheduling, small.tried
    verdict = cycled.beside(late, 0, [guest])
    assert verdict is not None
    assert cycled.refused_beside(late, lambda _: [guest]) == {0: verdict}
    assert cycled.refused_beside(late, lambda _: [other]) == {}
    cycled.beside(late, 0, [guest])
    cycled.columns.remove(cycled.columns.pods[0]["default/a"])
    assert cycled.refused_beside(late, lambda _: [guest]) == {}
    assert cycled.beside(late, 0, [guest]) is None


def test_what_other_filters_say_of_a_promised_node_is_not_remembered() -> None:
    """Whom a pod wants for a neighbour may come anywhere in the zone."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"name": "a"}},
    }
    wish = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    small = _small("a", "b", "c", tried=("guest", "late"), affinity=wish)
    cycled, (guest, late) = small.scheduling, small.tried
    assert cycled.beside(late, 0, [guest]) is not None
    assert cycled.refused_beside(late, lambda _: [guest]) == {}


class Small(NamedTuple):
    """A node of four CPUs with pods of one CPU each, and those that are tried."""

    scheduling: cycle.Cycle
    tried: list[Pod]

    def victims(
        self, *budgets: disruption.DisruptionBudget, guests: tuple[Pod, ...] = ()
    ) -> list[str]:
        """Who would leave for the last that is tried."""
        columns, pod = self.scheduling.columns, self.tried[-1]
        protection = disruption.Protection(budgets)
        with self.scheduling.sight(pod) as view:
            runs = dryrun.DryRuns(columns, view, pod, protection, self.scheduling.dry_runs)
            (verdict,) = runs.each([0], {0: guests})
        return [victim.removeprefix("default/") for victim in _compared(verdict).victims]


def _small(*lows: str, tried: tuple[str, ...] = ("high",), **more: object) -> Small:
    room = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    meta = {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}
    node = {"kind": "Node", "metadata": meta, "status": {"allocatable": room}}
    pods = [_pod(name, 0, "n") for name in lows]
    loaded = inventory.load([node, *pods, *(_pod(name, 5, "", **more) for name in tried)])
    return Small(cycle.Cycle(loaded.columns, profile.default()), loaded.pending)


def test_a_guest_takes_his_room_in_sums_too() -> None:
    """Who was promised a place on a node counts there, and is gone afterwards."""
    small = _small("a", "b", "c", "d", tried=("guest", "late"))
    guest = small.tried[0]
    assert small.victims() == ["d"]
    assert small.victims(guests=(guest,)) == ["c", "d"]
    assert small.victims(guests=(guest,)) == ["c", "d"]
    assert small.victims() == ["d"]
    assert not guest.node


def test_who_began_later_than_was_known_goes_first() -> None:
    """A pod's start is not counted anywhere, and is remembered nowhere either."""
    small = _small("a", "b", "c", "d")
    assert small.victims() == ["d"]
    columns = small.scheduling.columns
    for each in list(columns.pods[0].values()):
        hour = 9 - "abcd".index(each.name)
        columns.replace(replace(each, started=f"2026-01-02T0{hour}:00:00Z"), 0)
    assert small.victims() == ["a"]


def test_a_budget_that_comes_is_heard_at_once() -> None:
    """What was remembered of a node without one does not hold."""
    small = _small("a", "b", "c", "d")
    assert small.victims() == ["d"]
    selector = selectors.from_object({"matchLabels": {"name": "d"}})
    assert small.victims(disruption.DisruptionBudget("default", selector, 0)) == ["c"]
    assert small.victims() == ["d"]


def test_who_is_needed_stays() -> None:
    """Where other filters have a say, sums do not: one of the four is the neighbour it wants."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"name": "d"}},
    }
    wish = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    small = _small("a", "b", "c", "d", affinity=wish)
    assert not small.victims()


def _pod(name: str, priority: int, node: str, **more: object) -> dict[str, object]:
    spec = {
        **more,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "priority": priority,
        **({"nodeName": node} if node else {}),
    }
    return {"kind": "Pod", "metadata": {"name": name, "labels": {"name": name}}, "spec": spec}


def test_what_is_remembered_stays_within_its_bound() -> None:
    """Who was asked longest ago is forgotten first."""
    loaded = inventory.load([{"kind": "Node", "metadata": {"name": "n"}}, _pod("p", 0, "")])
    memory = dryrun.DryRunCache(loaded.columns, entries=3)
    pod_class = loaded.pending[0].pod_class
    kept = memory.of(pod_class, -1)
    for priority in range(9):
        assert memory.of(pod_class, -1) is kept
        memory.of(pod_class, priority)
    assert len(memory) == 3
    assert memory.of(pod_class, -1) is kept


def test_of_equal_pods_the_one_goes_whose_workload_was_disrupted_least() -> None:
    """It changes nothing where ranks differ: a lower priority goes first all the same."""
    bodies = [
        clusters.node("n0", cpu="3"),
        *(clusters.pod(name, cpu="1", on="n0") for name in ("often", "seldom")),
        clusters.pod("lower", cpu="1", on="n0", priority=-1),
        clusters.pod("wants", cpu="2", priority=9),
    ]
    often = {"d/often": 2.0, "d/lower": 9.0}
    for disrupted, expected in (
        (None, {"lower", "seldom"}),
        (lambda pod: often.get(pod.key, 0.0), {"lower", "seldom"}),
        (lambda pod: 2.0 - often.get(pod.key, 0.0), {"lower", "often"}),
    ):
        loaded = inventory.load(bodies)
        [pod] = loaded.pending
        scheduling = cycle.Cycle(loaded.columns, profile.default(), disrupted)
        protection = disruption.Protection(())
        with scheduling.sight(pod) as view:
            runs = dryrun.DryRuns(loaded.columns, view, pod, protection, scheduling.dry_runs)
            (by_sums,) = runs.each([0], {})
            by_filters = dryrun.in_columns(
                *(loaded.columns, view, pod, 0, protection), disrupted=disrupted
            )
        assert _compared(by_sums) == _compared(by_filters)
        assert isinstance(by_sums, dryrun.Candidate)
        assert {victim.name for victim in by_sums.victims} == expected
