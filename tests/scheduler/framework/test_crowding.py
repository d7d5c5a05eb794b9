"""What a node says with guests on it: sums say what the filters say, of each kind of refusal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import Verdict, cycle, dryrun, profile
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters
from tests.oracle.clusters import Maker

CLUSTERS = 6


def test_a_node_with_guests_is_judged_by_sums_as_by_the_filters() -> None:
    """On random clusters, for each pod beside each other one; no node is touched by sums."""
    refused = 0
    for seed in range(CLUSTERS):
        loaded = inventory.load(Maker(seed).bodies())
        columns, tried = loaded.columns, loaded.pending[:8]
        cycled = cycle.Cycle(columns, profile.default())
        for pod in tried:
            with cycled.sight(pod) as view:
                rows = [] if view.refused is not None else view.scored().rows.tolist()
            for row, guest in itertools.product(rows, tried):
                verdict = cycled.beside(pod, row, [guest])
                with dryrun.joined(columns, row, [guest]):
                    plain = cycled.verdict(pod, row)
                assert verdict == plain, (seed, pod.key, row, guest.key)
                refused += verdict is not None
    assert refused > CLUSTERS


def test_a_node_that_refuses_anyway_says_what_the_filters_say_with_its_guests_on_it() -> None:
    """On random clusters, at once and from memory; where guests help, what it says alone."""
    changed = 0
    for seed in range(CLUSTERS):
        loaded = inventory.load(Maker(seed).bodies())
        columns, tried = loaded.columns, loaded.pending[:8]
        cycled = cycle.Cycle(columns, profile.default())
        for pod, guest in itertools.product(tried, tried):
            alone = cycled.failure(pod).verdicts or {}
            guests = {row: [guest] for row in alone}
            for _ in range(2):
                crowded = cycled.crowded(pod, alone, guests)
                assert alone | crowded == _plain(cycled, pod, alone, guest), (seed, pod.key)
                changed += len(crowded)
    assert changed > CLUSTERS


def _plain(
    cycled: cycle.Cycle, pod: Pod, alone: Mapping[int, Verdict], guest: Pod
) -> dict[int, Verdict]:
    """By the filters themselves, node by node."""
    plain = {}
    for row in alone:
        with dryrun.joined(cycled.columns, row, [guest]):
            plain[row] = cycled.verdict(pod, row) or alone[row]
    return plain


def test_amounts_that_only_a_guest_takes_are_among_the_reasons_and_no_node_is_touched() -> None:
    """Without the guest, and once another pod has left, the reasons are the node's own again."""
    loaded = inventory.load(
        [
            clusters.node("n"),
            clusters.pod("a", on="n", cpu="2"),
            clusters.pod("b", on="n", cpu="2"),
            clusters.pod("guest", memory="7Gi"),
            clusters.pod("late", cpu="2", memory="2Gi"),
        ]
    )
    columns, (guest, late) = loaded.columns, loaded.pending
    cycled = cycle.Cycle(columns, profile.default())
    alone, looks = cycled.failure(late).verdicts, list(columns.looks)
    assert alone is not None
    for _ in range(2):
        crowded = cycled.crowded(late, alone, {0: [guest]})
        assert crowded[0].reasons == ("Insufficient cpu", "Insufficient memory")
    assert columns.looks == looks
    assert cycled.crowded(late, alone, {0: []}) == {}
    columns.remove(columns.pods[0]["d/a"])
    assert cycled.crowded(late, alone, {0: [guest]})[0].reasons == ("Insufficient memory",)
