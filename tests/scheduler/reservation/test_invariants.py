"""Whatever happens to reservations, in whatever order, their accounts are right.

A machine does what clusters do: nodes come and go, reservations are made, changed and deleted, pods
are placed, bound or not bound, end; time passes, the scheduler starts anew. After each step:

1. what is requested on a node is its pods, and what reservations hold there, each thing once;
2. what a reservation has allocated is what the pods use that draw on it;
3. no binding of ours makes a node hold more than it has;
4. a scheduler that starts anew knows the same.

At the end everything goes, and nothing is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from koordlet.model import moment
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import RefusedError, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.reservation import Reservation
from koordlet.scheduler.reservation import keys, lifecycle, preallocation
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.spec import Phase
from tests.kit import clusters, reservations

#: In CI 2 % of what a soak does: examples of so many steps.
STEPS, ORDINARY, SOAK = 50, 40, 2000
_NODES, _APPS = ("n1", "n2", "n3"), ("web", "job")
Body = dict[str, Any]


class Scheduler:
    """What a scheduler knows: derived from objects, nothing else."""

    def __init__(self, truth: Truth) -> None:
        self.columns = Columns()
        self.decoder = Decoder({})
        self.reservations = ReservationCache(self.columns, self.decoder)
        self.profile = profile.default()
        plugin = self.profile.find(Reservation)
        assert plugin is not None
        self.plugin: Reservation = plugin
        self.plugin.attach(self.reservations)
        self.cycle = Cycle(self.columns, self.profile)
        self.pods: dict[str, Pod] = {}
        for body in truth.nodes.values():
            self.columns.put(nodes.decode(body))
        for body in truth.pods.values():
            self.seen(body)
        for body in truth.reservations.values():
            self.reservations.put(body)
        for info in self.reservations.by_uid.values():
            self.reservations.step(info, truth.now)

    def seen(self, body: Body) -> None:
        """A pod is on a node."""
        pod = self.decoder.decode(body, 0)
        row = self.columns.rows.get(pod.node)
        if row is not None:
            self.columns.place(pod, row)
            self.pods[pod.key] = pod


class Truth:
    """The objects as a store has them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Body] = {}
        self.pods: dict[str, Body] = {}
        self.reservations: dict[str, Body] = {}
        self.now = reservations.NOW


class Machine(RuleBasedStateMachine):
    """A cluster and its scheduler."""

    def __init__(self) -> None:
        super().__init__()
        self.truth = Truth()
        self.truth.nodes["n1"] = _node("n1")
        self.me = Scheduler(self.truth)
        self.serial = 0
        #: Nodes that hold more than they have because somebody wanted it so.
        self.excused: set[str] = set()

    # What happens.

    @rule(name=st.sampled_from(_NODES))
    def node_comes(self, name: str) -> None:
        """A node, unless it is there."""
        if name not in self.truth.nodes:
            self.truth.nodes[name] = _node(name)
            self.me = Scheduler(self.truth)
            self.store()

    @rule(name=st.sampled_from(_NODES), really=st.sampled_from([False, False, False, True]))
    def node_goes(self, name: str, *, really: bool) -> None:
        """A node and its pods, now and then."""
        if name not in self.truth.nodes or not really:
            return
        del self.truth.nodes[name]
        self.excused.discard(name)
        for pod in self.me.columns.drop(name):
            self.me.pods.pop(pod.key, None)
            self.truth.pods.pop(pod.key, None)
        self.beat()

    @rule(
        cpu=st.integers(1, 6),
        app=st.sampled_from(_APPS),
        once=st.booleans(),
        policy=st.sampled_from(["", "Aligned", "Restricted"]),
        early=st.booleans(),
        several=st.booleans(),
        ttl=st.sampled_from(["0", "60s", "1h"]),
        taken=st.booleans(),
    )
    def reservation_comes(self, *, cpu: int, app: str, taken: bool, **how: Any) -> None:
        """A reservation: placed, or its status could not be written."""
        self.serial += 1
        body = _reservation(f"r{self.serial}", cpu, app, self.truth.now, how)
        name = body["metadata"]["name"]
        self.truth.reservations[name] = body
        reserve_pod = self.me.reservations.put(body)
        assert reserve_pod is not None
        row = self.me.cycle.choose(reserve_pod)
        if row < 0:
            self.me.reservations.failed(reserve_pod, self.me.cycle.failure(reserve_pod).message)
            return
        info = self.me.reservations.of(reserve_pod)
        assert info is not None
        adopted = self.me.plugin.adopts(info.spec, row)
        self.me.reservations.placed(reserve_pod, row, adopted)
        self.fits(row)
        if not taken:
            self.me.reservations.unplaced(info)
            self.beat()
            return
        assert set(info.owners) == {pod.key for pod in adopted}
        note = preallocation.annotation(info)
        body["metadata"].setdefault("annotations", {}).update(note)
        for pod in adopted:
            self.truth.pods[pod.key]["metadata"]["annotations"] |= self.me.plugin.marks(pod, "")
        self.store()

    @rule(
        app=st.sampled_from(_APPS), cpu=st.integers(1, 4), how=st.integers(0, 9), ok=st.booleans()
    )
    def pod_comes(self, app: str, cpu: int, how: int, ok: bool) -> None:
        """A pod: placed and bound, or placed and then not bound."""
        self.serial += 1
        body = _pod(f"p{self.serial}", app, cpu, how)
        pod = self.me.decoder.decode(body, self.serial)
        row = self.me.cycle.choose(pod)
        if row < 0:
            return
        node = self.me.columns.nodes[row]
        assert node is not None
        try:
            for plugin in self.me.profile.plugins:
                plugin.prepare(pod, node.name)
        except RefusedError:  # pragma: no cover
            pytest.fail("a node that was chosen refuses")
        self.me.columns.place(pod, row)
        if how == 0:
            self.excused.add(node.name)
        self.fits(row)
        if not ok:
            self.me.columns.remove(pod)
            for plugin in self.me.profile.plugins:
                plugin.unreserve(pod, node.name)
            return
        body["spec"]["nodeName"] = node.name
        for plugin in self.me.profile.plugins:
            body["metadata"]["annotations"] |= plugin.marks(pod, node.name)
        self.truth.pods[pod.key] = body
        self.me.pods[pod.key] = pod
        self.beat()

    @rule(app=st.sampled_from(_APPS), cpu=st.integers(2, 8), several=st.booleans())
    def a_full_node_is_promised(self, app: str, cpu: int, several: bool) -> None:
        """Pods until nothing fits, and a reservation for when they end."""
        for _ in range(6):
            self.pod_comes(app, 2, 9, ok=True)
        how = {"once": several, "policy": "", "early": True, "several": several, "ttl": "1h"}
        self.reservation_comes(cpu=cpu, app=app, taken=True, **how)

    @precondition(lambda self: self.truth.pods)
    @rule(which=st.integers(0, 99))
    def pod_ends(self, which: int) -> None:
        """A pod of those that run."""
        key = sorted(self.truth.pods)[which % len(self.truth.pods)]
        del self.truth.pods[key]
        self.me.columns.remove(self.me.pods.pop(key))
        self.beat()

    @precondition(lambda self: self.truth.reservations)
    @rule(
        which=st.integers(0, 99),
        what=st.sampled_from(["delete", "resize", "close"]),
        to=st.integers(1, 8),
    )
    def reservation_changes(self, which: int, what: str, to: int) -> None:
        """Deleted, resized, or made unschedulable."""
        name = sorted(self.truth.reservations)[which % len(self.truth.reservations)]
        body = self.truth.reservations[name]
        if what == "delete":
            del self.truth.reservations[name]
            self.me.reservations.drop(name)
            self.beat()
            return
        if what == "close":
            body["spec"]["unschedulable"] = not body["spec"].get("unschedulable", False)
        else:
            size = f'{{"resources":{{"cpu":"{to}"}}}}'
            body["metadata"].setdefault("annotations", {})[keys.RESIZE] = size
            self.excused.add(body["status"].get("nodeName", ""))
        self.me.reservations.put(body)
        self.beat()

    @rule(seconds=st.sampled_from([1, 30, 61, 3600, 90_000]))
    def time_passes(self, seconds: int) -> None:
        """Phases are due, and what is over is removed in time."""
        self.truth.now += seconds
        self.beat()
        for name, body in list(self.truth.reservations.items()):
            info = self.me.reservations.named(name)
            assert info is not None
            there = body["status"].get("nodeName", "") in self.truth.nodes
            if lifecycle.removable(
                info.stored, lifecycle.GarbageCollection(), self.truth.now, node_exists=there
            ):
                del self.truth.reservations[name]
                self.me.reservations.drop(name)

    @rule()
    def restart(self) -> None:
        """The same is known again, from objects alone."""
        before = self.figures()
        self.me = Scheduler(self.truth)
        assert self.figures() == before

    # What must hold.

    @invariant()
    def each_thing_once(self) -> None:
        """Requested amounts are pods and holdings."""
        columns = self.me.columns
        for row, node in enumerate(columns.nodes):
            if node is None:
                continue
            real = [pod for pod in columns.pods[row].values() if not pod.reserve_pod_of]
            cpu = sum(pod.pod_class.requests.real.get("cpu", 0) for pod in real)
            cpu += sum(kept.held().get("cpu", 0) for kept in self.me.reservations.on(row))
            assert columns.requested[0, row] == cpu

    @invariant()
    def allocated_is_used(self) -> None:
        """From the annotations of the pods alone."""
        for info in self.me.reservations.by_uid.values():
            if info.row >= 0:
                assert info.allocated.get("cpu", 0) == self.drawn(info.spec.uid, info.node)

    def drawn(self, uid: str, node: str) -> int:
        """What pods on a node draw on a reservation."""
        milli = 0
        for body in self.truth.pods.values():
            spelled = body["metadata"]["annotations"].get(keys.ALLOCATED, "")
            if f'"{uid}"' in spelled and body["spec"]["nodeName"] == node:
                [container] = body["spec"]["containers"]
                milli += 1000 * int(container["resources"]["requests"]["cpu"])
        return milli

    def fits(self, row: int) -> None:
        """A binding of ours does not make a node hold more than it has."""
        columns = self.me.columns
        node = columns.nodes[row]
        if node is not None and node.name not in self.excused:
            assert columns.requested[0, row] <= columns.allocatable[0, row]

    def beat(self) -> None:
        """What the loop does once a second: every phase where it should be, and written."""
        for info in self.me.reservations.by_uid.values():
            self.me.reservations.step(info, self.truth.now)
        self.store()

    def store(self) -> None:
        """Write every status that differs."""
        for name, body in self.truth.reservations.items():
            info = self.me.reservations.named(name)
            assert info is not None
            status = self.me.reservations.status(info, self.truth.now)
            body["status"] = status.body()
            info.stored = status

    def figures(self) -> Any:
        """What is known, comparable between two schedulers."""
        columns = self.me.columns
        rows = {
            node.name: (int(columns.requested[0, row]), int(columns.requested[3, row]))
            for row, node in enumerate(columns.nodes)
            if node is not None
        }
        info = {
            room.spec.name: (
                room.phase,
                room.node,
                room.allocated,
                room.held(),
                sorted(room.owners),
            )
            for room in self.me.reservations.by_uid.values()
            if not room.phase.over and room.phase is not Phase.PENDING
        }
        return rows, info

    def teardown(self) -> None:
        """Everything goes, and nothing is left."""
        for name in list(self.truth.reservations):
            self.me.reservations.drop(name)
        for pod in list(self.me.pods.values()):
            self.me.columns.remove(pod)
        assert not np.any(self.me.columns.requested)
        assert not np.any(self.me.columns.nonzero)


def _node(name: str) -> Body:
    return clusters.node(name, cpu="8")


def _reservation(name: str, cpu: int, app: str, now: float, how: Body) -> Body:
    more: Body = {"allocateOnce": how["once"], "ttl": how["ttl"]}
    if how["policy"] and not how["early"]:
        more["allocatePolicy"] = how["policy"]
    if how["early"]:
        more |= {"preAllocation": True, "preAllocationPolicy": {"enableMultiple": how["several"]}}
    owners = [{"labelSelector": {"matchLabels": {"app": app}}}]
    meta = {"creationTimestamp": moment.spell(now)}
    return reservations.reservation(name, cpu=str(cpu), owners=owners, meta=meta, **more)


def _pod(name: str, app: str, cpu: int, how: int) -> Body:
    labels = {"app": app} | ({keys.IGNORED: "true"} if how == 0 else {})
    notes = reservations.affinity() if how == 1 else {}
    meta = {"uid": f"uid-{name}", "annotations": notes}
    return clusters.pod(name, labels=labels, cpu=str(cpu), meta=meta)


TestReservations = Machine.TestCase
TestReservations.settings = settings(
    max_examples=ORDINARY, stateful_step_count=STEPS, deadline=None
)


@pytest.mark.soak
def test_many_steps() -> None:
    """The same, a hundred thousand steps."""
    many = settings(max_examples=SOAK, stateful_step_count=STEPS, deadline=None)
    run_state_machine_as_test(Machine, settings=many)
