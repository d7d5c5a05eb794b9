"""What is said of a pod that no node takes equals what is found anew, and costs what changed."""

from __future__ import annotations

import random

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Failure, Verdict, messages, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.failures import Failures
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters, random_life
from tests.kit.clusters import HOST, Body, affinity, node, pod, spread

WEB = {"app": "web"}
PORT = {"ports": [{"hostPort": 80}]}


def _sorts() -> list[Body]:
    """One pod of each kind of filter: of the node alone, of its pods, of others."""
    return [
        pod("plain", cpu="1500m"),
        pod("large", cpu="9"),
        pod("port", cpu="100m", container=PORT),
        pod("there", cpu="1", nodeSelector={"zone": "z1"}),
        pod("hard", labels=WEB, topologySpreadConstraints=[spread("zone", maxSkew=2)]),
        pod("far", labels=WEB, affinity=affinity("podAntiAffinity", HOST)),
    ]


def _same(kept: Failure, anew: Failure, total: int) -> None:
    assert (kept.message, kept.by) == (anew.message, anew.by)
    # Preemption tries nodes in this order.
    verdicts = kept.verdicts or {}
    assert [*verdicts.items()] == [*(anew.verdicts or {}).items()]
    reasons = [reason for verdict in verdicts.values() for reason in verdict.reasons]
    assert kept.message == messages.histogram(total, reasons)


@pytest.mark.parametrize("seed", range(4))
def test_a_failure_that_is_kept_equals_one_that_is_found_anew(seed: int) -> None:
    """After each of 80 random arrivals, departures and changes of nodes, for every class."""
    chance = random.Random(seed)
    made = [node(f"n{i}", cpu="3", labels={"zone": f"z{i % 3}"}) for i in range(12)]
    for kept, pending in random_life.live(chance, made, _sorts(), 80):
        promised = _promised(chance, kept.columns)
        for each in pending:
            fresh = Cycle(kept.columns, profile.default())
            _same(kept.failure(each), fresh.failure(each), len(made))
            _same(kept.failure(each, promised), fresh.failure(each, promised), len(made))


def _promised(chance: random.Random, columns: Columns) -> dict[int, Verdict]:
    """Some nodes that others were promised, refused for one of two reasons."""
    rows = chance.sample(sorted(columns.rows.values()), chance.randrange(4))
    reasons = ("Insufficient cpu", "Too many pods")
    return {row: Verdict((chance.choice(reasons),), resolvable=True, plugin="Q") for row in rows}


def test_the_nodes_of_others_are_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a pod of a node goes, that node is asked, however many there are."""
    guests = [pod(f"g{i}", on=f"n{i}", cpu="2") for i in range(50)]
    loaded = inventory.load(
        [*(node(f"n{i}", cpu="3") for i in range(50)), *guests, pod("p", cpu="4")]
    )
    (large,) = loaded.pending
    cycle = Cycle(loaded.columns, profile.default())
    assert cycle.failure(large).message.endswith("50 Insufficient cpu.")
    asked: list[int] = []
    real = View.verdict

    def verdict(view: View, row: int) -> Verdict | None:
        asked.append(row)
        return real(view, row)

    monkeypatch.setattr(View, "verdict", verdict)
    monkeypatch.setattr(View, "verdicts", lambda *_: pytest.fail("all nodes are asked"))
    row = loaded.columns.rows["n7"]
    gone: Pod = loaded.columns.pods[row]["d/g7"]
    loaded.columns.remove(gone)

    assert cycle.failure(large).message.endswith("50 Insufficient cpu.")
    assert asked == [row]


def test_of_many_classes_on_many_nodes_the_most_recent_are_remembered() -> None:
    """Each failure takes room for each node."""
    made = [
        node("n0"),
        node("n1"),
        *(pod(f"p{i}", cpu="9", labels={"i": f"{i}"}) for i in range(18)),
    ]
    loaded = inventory.load(made)
    cycle, known = Cycle(loaded.columns, profile.default()), Failures(loaded.columns, 34)
    for each in loaded.pending:
        known.keep(each.pod_class, known.renewed(cycle.view(each.pod_class)))
    kept = [each.name for each in loaded.pending if known.current(each.pod_class) is not None]
    assert kept == [f"p{i}" for i in range(1, 18)]
    assert len(known) == 17


def test_a_message_without_nodes() -> None:
    """There is nobody to ask, and nothing to remember."""
    assert clusters.message("p", pod("p")) == "no nodes available to schedule pods"
