"""CPUs by number of a pre-allocation, as soon as its room is there."""

from __future__ import annotations

import json

from koordlet.model import cpuset
from koordlet.scheduler.allocation import handover
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import profile
from koordlet.scheduler.plugins import conversion
from koordlet.scheduler.reservation import spec
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.info import ReservationInfo
from tests.kit import clusters
from tests.kit.clusters import Body
from tests.kit.numa import STATUS, bound, topology
from tests.kit.reservations import reservation

CPUS = cpuset.CPUSet.parse
AVAILABLE = spec.Phase.AVAILABLE
LSR = {"koordinator.sh/qosClass": "LSR"}


def bound_to(cpu: str, *pods: Body, labels: Body | None = None) -> ReservationInfo:
    """A reservation that has adopted every pod with its owners' label, on a node of eight CPUs."""
    node = clusters.node("n", cpu="8")
    loaded = inventory.load([node, topology("n"), *pods])
    made = profile.default()
    ready = conversion.Chooser({"any": made, "default-scheduler": made}).ready
    cache = ReservationCache(loaded.columns, loaded.decoder, ready)
    loaded.equip(made, 0.0)
    meta = {"labels": LSR if labels is None else labels}
    reserve_pod = cache.put(reservation("r", cpu=cpu, preAllocation=True, meta=meta))
    assert reserve_pod is not None
    several = loaded.columns.pods[0].values()
    adopted = [candidate for candidate in several if candidate.pod_class.labels.get("app") == "web"]
    return cache.placed(reserve_pod, 0, adopted)


def running(name: str, cpus: str, **labels: str) -> Body:
    """A pod on that node that is bound to CPUs."""
    count = str(len(CPUS(cpus)))
    made = bound(name, count, {STATUS: {"cpuset": cpus}}, on="n")
    made["metadata"]["labels"] |= labels
    return made


def test_it_has_the_cpus_of_whom_it_adopts() -> None:
    """And others, until it has enough; where the room is there, it is available at once."""
    alone = bound_to("2", running("old", "4-5", app="web"))
    more = bound_to("4", running("old", "4-5", app="web"), running("other", "0-1"))

    assert (alone.phase, alone.reserve_pod and alone.reserve_pod.cpus) == (AVAILABLE, CPUS("4-5"))
    assert more.reserve_pod is not None
    mine = more.reserve_pod.cpus
    assert mine is not None
    assert (more.phase, len(mine), CPUS("4-5") - mine) == (AVAILABLE, 4, CPUS(""))
    assert not mine & CPUS("0-1")
    assert json.loads(conversion.marks(more)[STATUS])["cpuset"] == str(mine)
    left = handover.rest(more)
    assert left is not None
    assert left.cpus == mine - CPUS("4-5")


def test_it_waits_for_cpus_that_others_have() -> None:
    """Amounts alone are no promise of CPUs by number."""
    info = bound_to("4", running("other", "0-5"))

    assert info.phase is spec.Phase.WAITING
    assert info.reserve_pod is not None
    assert info.reserve_pod.cpus is None
    assert conversion.marks(info) == {}


def test_amounts_are_all_that_others_ask_for() -> None:
    """Without the class that is bound to CPUs there are none by number."""
    info = bound_to("2", labels={})

    assert (info.phase, info.reserve_pod and info.reserve_pod.cpus) == (AVAILABLE, None)
