"""Cycles per instruction by a processor's own counters: what they say, and what follows from it.

The machine is an arm64, because that is the processor whose counters are emulated. It needs its
emulator: ``apt-get install --no-install-recommends qemu-system-arm``.
"""

from __future__ import annotations

import dataclasses
import errno
from typing import Any, cast

import pytest

from koordlet.host.counters import performance
from koordlet.model import decision
from koordlet.model.nodereport import NodeReport
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.answers import Clock
from koordlet.workloads import declared
from tests.kit import descheduling
from tests.vm import board, fixtures

# A soak: half an hour of the machine's time, in which each instruction of an agent is emulated.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

#: The binary logarithm of the cycles that an instruction takes.
_SHIFT = 3
_CYCLES = 1 << _SHIFT
_PATIENCE = 900.0
_NODES = ("n1", "n2")


def seen_by(probe: str) -> dict[str, Any]:
    """What a probe prints that ran in a machine of its own."""
    with fixtures.fresh("1s1c", board=board.arm64(_SHIFT)) as guest:
        words = ["python3", "-m", f"tests.vm.probes.{probe}"]
        environment = {"KOORDLET_TEST_PATIENCE": str(_PATIENCE)}
        result = guest.run(words, env=environment, timeout=_PATIENCE)
        return cast("dict[str, Any]", result.json())


def moves(conditions: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pod and reason of what a descheduler moves that gets this report of n1 for five minutes."""
    bodies = [descheduling.node(name, cpu="9") for name in _NODES]
    for name, qos in (("web", "LS"), ("batch", "BE")):
        meta = {"namespace": declared.NAMESPACE, "labels": {"koordinator.sh/qosClass": qos}}
        bodies.append(descheduling.pod(name, "n1", owner=f"ReplicaSet/{name}", meta=meta))
    policy = descheduling.policy({"Interference": {"dryRun": False}})
    settings = configuration.read(policy, "test")
    reported = tuple(
        decision.Condition(**{**each, "status": each["status"] == "True"}) for each in conditions
    )
    reports = {"n1": NodeReport(node="n1", conditions=reported)}
    gone = []
    for seconds in (0.0, 300.0):
        state, _ = dump.state(bodies, descheduling.NOW)
        now = Clock(wall=descheduling.NOW + seconds, steady=seconds)
        state = dataclasses.replace(state, now=now, reports=reports)
        played = rounds.DeschedulingRound(settings.profiles, settings.limits, state)
        result = played.play(descheduling.everybody)
        gone += [(each.resident.pod.key, each.reason) for each in result.evicted]
    return gone


def test_who_is_slowed_is_told_by_whom_and_the_neighbour_leaves() -> None:
    """The agent counts what plain counters do; its report makes the descheduler move the neighbour.

    Both stall at a time, as if they shared a cache that does not hold what they need.
    """
    seen = seen_by("slowed")

    calm = pytest.approx({"web": _CYCLES, "batch": _CYCLES}, rel=0.02)
    assert [minute for minute in seen["calm"] if len(minute) == 2][12:], seen
    assert {ratio for minute in seen["calm"] for ratio in minute.values()} == {_CYCLES}, seen
    assert seen["plain calm"] == calm, seen
    assert seen["nobody"] == []
    assert seen["noisy"]["web"] > 1.5 * _CYCLES, seen
    assert seen["noisy"] == pytest.approx(seen["plain noisy"], rel=0.3), seen
    conditions = seen["conditions"]
    assert [(each["type"], each["subject"]) for each in conditions] == [
        ("LatencySensitiveSlowed", "host/web"),
        ("DisturbsNeighbours", "host/batch"),
    ]
    [left] = seen["gone"]
    assert list(left) == ["batch"], seen
    assert moves(conditions) == [("host/batch", "it may have slowed host/web for 5 minutes")]


def test_an_agent_that_may_not_count_says_so_once() -> None:
    """CAP_PERFMON is enough up to 2 of ``kernel.perf_event_paranoid``, and not at Debian's 3."""
    seen = seen_by("refused")

    refused = performance.WHY[errno.EACCES]
    assert seen.pop("logged") == [refused]
    assert seen == {
        "perfmon 2": "",
        "nothing 2": refused,
        "perfmon 3": refused,
        "nothing 3": refused,
    }
