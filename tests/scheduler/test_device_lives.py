"""Whatever happens to pods, reservations and devices, in whatever order: no device has two owners.

A machine does what clusters do: pods with devices come, are bound or not, end; reservations are
made, deleted, used up, take over from running pods; annotations are broken by somebody; devices
fall ill, shrink, vanish and come back; the scheduler starts anew. After each step:

1. what is given now is there: what pods have of a device, and reservations hold, is at most what
   it has, or no more than before where it shrank; unhealthy ones are given to nobody;
2. a node that was chosen for a pod never refuses it when its devices are taken;
3. who draws on a Restricted reservation has its devices, and no others;
4. a scheduler that starts anew knows the same of each device.
At the end everything goes, and every device is as free as it was made.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

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
from koordlet.scheduler.allocation import device_room, devices
from koordlet.scheduler.allocation.devices import Slice
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins import conversion
from koordlet.scheduler.reservation import keys, preallocation
from koordlet.scheduler.reservation.spec import AllocatePolicy, Phase
from tests.kit import clusters, reservations
from tests.kit.device_lives import FUNCTION, NODES, STATES, WISHES, Scheduler, Truth, Wish
from tests.kit.devices import ALLOCATED, RDMA, report

STEPS, ORDINARY, SOAK = 40, 40, 2000
_APPS = ("web", "job")
Body = dict[str, Any]
Used = Counter[tuple[str, int, str]]


class Machine(RuleBasedStateMachine):
    """A cluster and its scheduler."""

    def __init__(self) -> None:
        super().__init__()
        self.truth = Truth()
        self.me = Scheduler(self.truth)
        self.serial = 0

    @rule(
        wish=st.sampled_from(WISHES),
        app=st.sampled_from(_APPS),
        how=st.sampled_from(["", "", "", "required", "ignores"]),
        ok=st.booleans() | st.just(True),  # noqa: FBT003 -- a strategy
    )
    def pod_comes(self, wish: Wish, app: str, how: str, ok: bool) -> None:
        """A pod: placed and bound, or placed and then not bound."""
        self.serial += 1
        labels = {"app": app} | ({keys.IGNORED: "true"} if how == "ignores" else {})
        notes = wish.notes | (reservations.affinity() if how == "required" else {})
        name = f"p{self.serial}"
        meta = {"uid": f"uid-{name}", "annotations": notes}
        body = clusters.pod(name, labels=labels, requests=wish.requests, meta=meta)
        pod = self.me.decoder.decode(body, self.serial)
        row = self.me.cycle.choose(pod)
        if row < 0:
            return
        before = self.used(row, holdings=True)
        node = self.taken(pod, row)
        self.me.columns.place(pod, row)
        self.me.pods[pod.key] = pod
        self.holds(pod, row, before)
        if not ok:
            self.me.columns.remove(self.me.pods.pop(pod.key))
            for plugin in self.me.profile.plugins:
                plugin.unreserve(pod, node)
            assert pod.devices == ()
            return
        body["spec"]["nodeName"] = node
        for plugin in self.me.profile.plugins:
            body["metadata"]["annotations"] |= plugin.marks(pod, node)
        self.truth.pods[pod.key] = body
        self.beat()

    def taken(self, pod: Pod, row: int) -> str:
        """The node's name, with everything chosen that is chosen by number (2)."""
        node = self.me.columns.nodes[row]
        assert node is not None
        try:
            for plugin in self.me.profile.plugins:
                plugin.prepare(pod, node.name)
        except RefusedError as refusal:  # pragma: no cover
            pytest.fail(f"a node that was chosen refuses: {refusal}")
        return node.name

    @rule(
        wish=st.sampled_from(WISHES),
        app=st.sampled_from(_APPS),
        once=st.booleans(),
        policy=st.sampled_from(["", "Aligned", "Restricted"]),
        early=st.booleans(),
        taken=st.booleans() | st.just(True),  # noqa: FBT003 -- a strategy
    )
    def reservation_comes(self, wish: Wish, app: str, *, taken: bool, **how: Any) -> None:
        """A reservation: placed, or its status could not be written."""
        self.serial += 1
        more: Body = {"allocateOnce": how["once"], "ttl": "0"}
        if how["early"]:
            more |= {"preAllocation": True, "preAllocationPolicy": {"enableMultiple": True}}
        elif how["policy"]:
            more["allocatePolicy"] = how["policy"]
        owners = [{"labelSelector": {"matchLabels": {"app": app}}}]
        notes = dict(wish.notes)
        meta = {"creationTimestamp": moment.spell(self.truth.now), "annotations": notes}
        name, asked = f"r{self.serial}", wish.requests
        body = reservations.reservation(name, requests=asked, owners=owners, meta=meta, **more)
        self.truth.reservations[name] = body
        reserve_pod = self.me.reservations.put(body)
        assert reserve_pod is not None
        row = self.me.cycle.choose(reserve_pod)
        if row < 0:
            self.me.reservations.failed(reserve_pod, "none")
            return
        info = self.me.reservations.of(reserve_pod)
        assert info is not None
        before = self.used(row, holdings=True)
        node = self.taken(reserve_pod, row)
        adopted = self.me.plugin.adopts(info.spec, row)
        self.me.reservations.placed(reserve_pod, row, adopted)
        self.holds(reserve_pod, row, before)
        if not taken:
            for plugin in self.me.profile.plugins:
                plugin.unreserve(reserve_pod, node)
            self.me.reservations.unplaced(info)
            self.beat()
            return
        for plugin in self.me.profile.plugins:
            body["metadata"]["annotations"] |= plugin.marks(reserve_pod, node)
        body["metadata"]["annotations"] |= preallocation.annotation(info)
        for pod in adopted:
            self.truth.pods[pod.key]["metadata"]["annotations"] |= self.me.plugin.marks(pod, "")
        self.beat()

    @precondition(lambda self: self.truth.pods)
    @rule(which=st.integers(0, 99), how=st.sampled_from(["end", "end", "end", "break"]))
    def pod_ends(self, which: int, how: str) -> None:
        """A pod of those that run; or somebody breaks what it says that it has."""
        key = sorted(self.truth.pods)[which % len(self.truth.pods)]
        self.me.columns.remove(self.me.pods.pop(key))
        if how == "end":
            del self.truth.pods[key]
        else:
            body = self.truth.pods[key]
            body["metadata"]["annotations"][ALLOCATED] = '{"gpu": [{"minor": "one"}]}'
            self.me.seen(body)
        self.beat()

    @precondition(lambda self: self.truth.reservations)
    @rule(which=st.integers(0, 99))
    def reservation_goes(self, which: int) -> None:
        """Its pods keep what they have."""
        name = sorted(self.truth.reservations)[which % len(self.truth.reservations)]
        del self.truth.reservations[name]
        self.me.reservations.drop(name)
        self.beat()

    @rule(name=st.sampled_from(NODES), state=st.sampled_from([None, *STATES]))
    def devices_change(self, name: str, state: tuple[Body, ...] | None) -> None:
        """They fall ill, shrink, vanish, come back; or nobody tells of them any more."""
        if state is None:
            self.truth.devices.pop(name, None)
            self.me.columns.furnish(name, None)
        else:
            self.truth.devices[name] = report(name, *state)
            self.me.columns.furnish(*devices.decode(self.truth.devices[name]))
        self.beat()

    @rule()
    def restart(self) -> None:
        """The same is known again, from objects alone."""
        before = self.known()
        self.me = Scheduler(self.truth)
        assert self.known() == before

    @rule()
    def edited(self) -> None:
        """Objects come again, as they do after each write."""
        before = self.known()
        for body in self.truth.reservations.values():
            self.me.reservations.put(body)
        self.beat()
        assert self.known() == before

    # What must hold.

    def holds(self, pod: Pod, row: int, before: Used) -> None:
        """What a pod was given now is there, and nobody else has it (1, 3)."""
        told = self.reported(row)
        if told is None:
            assert pod.devices == ()
            return
        known = {(device.kind, device.minor): device for device in told.several}
        alone, used = self.used(row, holdings=False), self.used(row, holdings=True)
        for share in pod.devices:
            device = known[share.kind, share.minor]
            assert device.healthy
            for name, room in device.room.items():
                key = share.kind, share.minor, name
                assert alone[key] <= room or pod.reserve_pod_of
                assert used[key] <= max(room, before[key]) or self.rude(row)
        self.restricted(pod, told)
        self.functions(pod, row)

    def functions(self, pod: Pod, row: int) -> None:
        """Nobody else has a virtual function that a pod was given now (1)."""
        mine = {(part.minor, each.bus) for part in pod.devices for each in part.functions}
        for other in self.me.columns.pods[row].values():
            if other is not pod and not self.yields(other, pod):
                parts = other.devices
                assert mine.isdisjoint((p.minor, each.bus) for p in parts for each in p.functions)

    def yields(self, other: Pod, pod: Pod) -> bool:
        """Whether a pod may have what another one has: kept for it, or for anybody; or adopted."""
        info = self.me.columns.kept_reservation(other)
        if info is None:
            return bool(pod.reserve_pod_of) and other.draws_on == pod.reserve_pod_of
        return pod.draws_on == info.spec.uid or keys.IGNORED in pod.pod_class.labels

    def reported(self, row: int) -> devices.Devices | None:
        """The devices of a node."""
        node = self.me.columns.nodes[row]
        assert node is not None
        return self.me.columns.devices.get(node.name)

    def rude(self, row: int) -> bool:
        """Whether somebody is there who may use what is held for others."""
        several = self.me.columns.pods[row].values()
        return any(keys.IGNORED in pod.pod_class.labels for pod in several)

    def used(self, row: int, *, holdings: bool) -> Used:
        """By device and name: what pods have of it, and reservations hold."""
        told = self.reported(row) or devices.Devices(())
        parts: list[Slice] = []
        for pod in self.me.columns.pods[row].values():
            if not pod.reserve_pod_of:
                parts += pod.devices
        for info in self.me.reservations.on(row) if holdings else ():
            left = device_room.rest(info, told)
            parts += [Slice(kind, minor, "", part) for (kind, minor), part in left.items()]
        used: Used = Counter()
        for part in parts:
            device = next(
                (d for d in told.several if (d.kind, d.minor) == (part.kind, part.minor)), None
            )
            amounts = part.amounts if device is None else device.filled(part.amounts)
            for name, much in amounts.items():
                used[part.kind, part.minor, name] += much
        return used

    def restricted(self, pod: Pod, told: devices.Devices) -> None:
        """From the reservation alone."""
        info = self.me.reservations.find(pod.draws_on) if pod.draws_on else None
        restricted = info is not None and info.spec.policy is AllocatePolicy.RESTRICTED
        if info is None or not restricted or pod.uid in info.adopted:
            return
        mine = info.reserve_pod.devices if info.reserve_pod is not None else ()
        for share in pod.devices:
            of_kind = {each.minor for each in mine if each.kind == share.kind}
            named = any(share.kind in name for name in info.spec.restricted)
            assert not of_kind or not named or share.minor in of_kind
        assert told is not None

    @invariant()
    def nothing_is_held_that_is_over(self) -> None:
        """A reservation that is over, or waits, has no say about devices."""
        for info in self.me.reservations.by_uid.values():
            if info.phase.over:
                assert info.row < 0

    def beat(self) -> None:
        """What the loop does once a second: every phase where it should be, and written."""
        for info in self.me.reservations.by_uid.values():
            self.me.reservations.step(info, self.truth.now)
        for name, body in self.truth.reservations.items():
            known = self.me.reservations.named(name)
            assert known is not None
            status = self.me.reservations.status(known, self.truth.now)
            if status.phase is Phase.AVAILABLE:
                body["metadata"]["annotations"] |= conversion.marks(known)
            body["status"] = status.body()
            known.stored = status

    def known(self) -> Any:
        """What is known of devices, comparable between two schedulers."""
        columns = self.me.columns
        pods = {key: pod.devices for key, pod in self.me.pods.items()}
        kept = {}
        for info in self.me.reservations.by_uid.values():
            if info.row >= 0 and info.reserve_pod is not None:
                kept[info.spec.name] = info.reserve_pod.devices, info.phase
        left = {}
        for name, told in columns.devices.items():
            of_node = device_room.DeviceRoom.of(told, columns, columns.rows[name])
            left[name] = {key: dict(part) for key, part in of_node.left.items()}
        room = {
            name: columns.allocatable[kind].tolist()[: columns.size]
            for name, kind in sorted(columns.resources.items())
            if columns.allocatable[kind].any()
        }
        return pods, kept, left if not self.loose() else None, room

    def loose(self) -> bool:
        """Whether somebody has devices that nobody can name: where they are is a guess."""
        several = (pod for row in self.me.columns.pods for pod in row.values())
        return any(not pod.devices and self.asks(pod) for pod in several)

    @staticmethod
    def asks(pod: Pod) -> bool:
        """Whether a pod asks for devices."""
        return any("gpu" in name or name == RDMA for name in pod.pod_class.requests.real)

    def teardown(self) -> None:
        """Everything goes, and nothing is left."""
        for name in list(self.truth.reservations):
            self.me.reservations.drop(name)
        for pod in list(self.me.pods.values()):
            self.me.columns.remove(pod)
        columns = self.me.columns
        for name, told in columns.devices.items():
            room = device_room.DeviceRoom.of(told, columns, columns.rows[name])
            whole = {(d.kind, d.minor): dict(d.room) for d in told.several if d.healthy}
            assert room.left == whole


def test_a_pod_that_ignores_reservations_may_have_a_function_of_one() -> None:
    """It is not its second owner."""
    machine = Machine()
    how = {"once": False, "policy": "", "early": False, "taken": True}
    machine.devices_change("n1", None)
    machine.reservation_comes(FUNCTION, "web", **how)
    machine.pod_comes(FUNCTION, "web", "ignores", ok=True)
    machine.teardown()


TestDeviceLives = Machine.TestCase
TestDeviceLives.settings = settings(max_examples=ORDINARY, stateful_step_count=STEPS, deadline=None)


@pytest.mark.soak
def test_many_steps() -> None:
    """The same, eighty thousand steps."""
    many = settings(max_examples=SOAK, stateful_step_count=STEPS, deadline=None)
    run_state_machine_as_test(Machine, settings=many)
