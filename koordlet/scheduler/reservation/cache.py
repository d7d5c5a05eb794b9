"""Reservation state of one scheduler: every Reservation object, what it holds, who draws on it.

Covers: objects that come, change and go; binding to a node; pods that begin and cease to draw;
phases that are due; statuses to store. Does not cover: choosing nodes and reservations (the
plugin), reading and writing the API (``loop.reservation_controller``), the clock (given).

Rules:
1. The columns report each pod that is placed or removed; what a reservation holds follows at once.
   A bind that fails, a victim that leaves and a dry run of preemption need no code of their own.
2. A node's requested amounts are, at every moment: its pods, plus what each reservation holds.
3. A pod draws on the reservation whose UID its annotation has, where both are on one node.
4. An object that cannot be read costs only itself: its error becomes its condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from koordlet.kubeapi import objects
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Rows
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import lifecycle, parsing, preallocation
from koordlet.scheduler.reservation.claims import Claims
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.lifecycle import RejectedReservation
from koordlet.scheduler.reservation.reserve_pod import ReservePods
from koordlet.scheduler.reservation.spec import AllocatePolicy, Phase, ReservationSpec
from koordlet.scheduler.reservation.spec import ReservationStatus as Status

#: Whether a bound reservation whose amounts are free has its CPUs and devices, too.
Ready = Callable[[ReservationInfo, Columns], bool]


class ReservationCache:
    """Every reservation that the scheduler knows."""

    def __init__(self, columns: Columns, decoder: Decoder, ready: Ready = lambda *_: True) -> None:
        self.by_uid: dict[str, ReservationInfo] = {}
        #: Objects that cannot be read, by name.
        self.rejected: dict[str, RejectedReservation] = {}
        #: Why a pending reservation has no node, by UID.
        self.messages: dict[str, str] = {}
        #: UIDs of reservations to look at: their account or their object has changed.
        self.touched: set[str] = set()
        #: Running pods in operating mode, which reserve room for others, by UID.
        self.operating: dict[str, ReservationInfo] = {}
        self._by_name: dict[str, ReservationInfo] = {}
        self._on_row: dict[int, dict[str, ReservationInfo]] = {}
        self._serial = 0
        self._reserve_pods = ReservePods(decoder)
        self._ready = ready
        self._attach(columns)

    def _attach(self, columns: Columns) -> None:
        self.columns = columns
        self.claims = Claims(columns)
        columns.report_to(self)
        for row, pods in enumerate(columns.pods):
            for pod in [pod for pod in pods.values() if pod.operates]:
                self._operate(pod, row)

    def rebase(self, columns: Columns) -> None:
        """Hold the same in columns that were built anew."""
        before = sorted(self.by_uid.values(), key=lambda info: info.position)
        for table in (self.by_uid, self.operating, self._by_name, self._on_row):
            table.clear()
        self._serial = 0
        self._attach(columns)
        for info in before:
            info.row, info.relief, info.owners = -1, {}, {}
            info.count()
            self._add(info)
            row = columns.rows.get(info.node, -1) if info.phase.holds else -1
            if row >= 0 and info.reserve_pod is not None:
                self._bind_again(info, info.reserve_pod, row, info.phase)

    # Lookups.

    def named(self, name: str) -> ReservationInfo | None:
        """The reservation of this name."""
        return self._by_name.get(name)

    def find(self, uid: str) -> ReservationInfo | None:
        """The reservation, or the pod in operating mode, of this UID."""
        return self.by_uid.get(uid) or self.operating.get(uid)

    def drawn(self, pod: Pod) -> ReservationInfo | None:
        """The reservation that a pod draws on; it may be over."""
        if pod.draws_on:
            return self.find(pod.draws_on)
        return self._by_name.get(pod.drawn_name) if pod.drawn_name else None

    def of(self, reserve_pod: Pod) -> ReservationInfo | None:
        """The reservation of a reserve pod."""
        return self.by_uid.get(reserve_pod.reserve_pod_of)

    def on(self, row: int) -> Iterable[ReservationInfo]:
        """Reservations that hold something on a node."""
        return self._on_row.get(row, {}).values()

    def rows(self) -> Rows:
        """Nodes on which any reservation holds something."""
        return np.array([row for row, several in self._on_row.items() if several], np.intp)

    def classes(self) -> set[PodClass]:
        """The classes of all reserve pods, and those that they are made of."""
        living = {info.reserve_pod.pod_class for info in self.by_uid.values() if info.reserve_pod}
        return living | self._reserve_pods.keep(living)

    def conflict(self, row: int, policy: AllocatePolicy) -> bool:
        """Whether pods can draw on a reservation of the other kind of policy on a node."""
        default = policy is AllocatePolicy.DEFAULT
        return any(
            (info.spec.policy is AllocatePolicy.DEFAULT) is not default and info.usable
            for info in self.on(row)
        )

    # Objects.

    def put(self, body: Body) -> Pod | None:
        """Take in a new or changed object; its reserve pod where that has yet to be placed."""
        name, revision = objects.text(body, "name"), objects.revision(body)
        try:
            spec, stored = parsing.read(body), parsing.read_status(body)
            known = self.by_uid.get(spec.uid)
            position = known.position if known else len(self.by_uid)
            reserve_pod = self._reserve_pods.make(spec, position)
        except BadObjectError as error:
            self._reject(name, body, str(error))
            return None
        self.rejected.pop(name, None)
        self.touched.add(spec.uid)
        if known is not None:
            if known.row >= 0 and objects.older(revision, known.revision):
                return None  # sent before our own last write, which follows
            known.revision = revision
            return self._change(known, spec, stored, reserve_pod)
        replaced = self._by_name.get(spec.name)
        if replaced is not None:
            # Another UID under the same name: the old object is gone.
            self._remove(replaced)
        info = ReservationInfo(spec, stored, phase=stored.phase, node=stored.node)
        info.revision = revision
        self._add(info)
        if stored.phase.over:
            return None
        if stored.phase.holds and stored.node:
            self._restore(info, reserve_pod)
            return None
        info.phase = Phase.PENDING
        return self._to_place(info, reserve_pod)

    def _to_place(self, info: ReservationInfo, reserve_pod: Pod) -> Pod | None:
        """A reservation that no pod can ever match gets no node; its condition says why."""
        info.reserve_pod = reserve_pod
        if info.spec.fault:
            self.messages[info.spec.uid] = info.spec.fault
        return None if info.spec.fault or info.spec.deleting else reserve_pod

    def _reject(self, name: str, body: Body, error: str) -> None:
        stored, revision = parsing.readable_status(body), objects.revision(body)
        known, uid = self._by_name.get(name), objects.text(body, "uid")
        if known is not None and known.spec.uid == uid:
            # A broken edit must not free the room that pods rely on.
            known.stored, known.revision = stored, revision
            self.messages[uid] = error
            self.touched.add(uid)
            return
        self.rejected[name] = RejectedReservation(name, uid, error, stored, revision)

    def _restore(self, info: ReservationInfo, reserve_pod: Pod) -> None:
        """Hold what the stored status says that it holds."""
        info.reserve_pod = reserve_pod
        if (row := self.columns.rows.get(info.stored.node)) is None:
            info.orphaned = True
            return
        info.adopted, info.pledged = preallocation.remembered(info.spec)
        self._bind_again(info, reserve_pod, row, info.stored.phase)

    def _bind_again(self, info: ReservationInfo, pod: Pod, row: int, phase: Phase) -> None:
        """Hold what was held before; where absurd amounts leave no room, ``node_came`` is next."""
        try:
            self._bind(info, pod, row, phase)
        except BadObjectError:
            info.reserve_pod, info.phase = pod, phase

    def _change(
        self, info: ReservationInfo, spec: ReservationSpec, stored: Status, reserve_pod: Pod
    ) -> Pod | None:
        info.stored = stored
        if stored.phase.over and not info.phase.over:
            self._turn(info, stored.phase)
        if info.phase is Phase.PENDING and stored.phase.holds and stored.node:
            # Another scheduler, or an earlier process of this one, gave it a node.
            info.phase, info.node, info.spec = stored.phase, stored.node, spec
            self._restore(info, reserve_pod)
            return None
        if info.row < 0:
            info.spec = spec
            return self._to_place(info, reserve_pod) if info.phase is Phase.PENDING else None
        if spec != info.spec:
            if info.reserve_pod is not None and not reserve_pod.chosen:
                # What was chosen for it is on its way to the store.
                reserve_pod.inherit(info.reserve_pod)
            row = info.row
            self._release(info)
            info.spec = spec
            self._bind_again(info, reserve_pod, row, info.phase)
        return None

    def drop(self, name: str) -> ReservationInfo | None:
        """Forget a deleted object; its pods keep what they have."""
        self.rejected.pop(name, None)
        info = self._by_name.get(name)
        if info is not None:
            self._remove(info)
        return info

    def node_came(self, name: str) -> None:
        """Hold again what was reserved on a node that is back."""
        for info in self.by_uid.values():
            lost = info.row < 0 and info.phase.holds and info.node == name
            if lost and info.reserve_pod is not None:
                self._restore(info, info.reserve_pod)

    # Decisions and phases.

    def placed(self, reserve_pod: Pod, row: int, adopted: Iterable[Pod] = ()) -> ReservationInfo:
        """Bind to the node that was found. A pre-allocation waits until its room is released."""
        info = self.by_uid[reserve_pod.reserve_pod_of]
        self.messages.pop(info.spec.uid, None)
        phase = Phase.WAITING if info.spec.pre_allocation is not None else Phase.AVAILABLE
        self._bind(info, reserve_pod, row, phase, tuple(adopted))
        if info.phase is Phase.WAITING and self._released(info):
            self._turn(info, Phase.AVAILABLE)
        return info

    def unplaced(self, info: ReservationInfo) -> None:
        """Take a binding back that could not be stored."""
        for pod in info.owners.values():
            if pod.uid in info.adopted:
                pod.draws_on = pod.drawn_name = ""
        if info.row >= 0:
            self._release(info)
        info.phase, info.node, info.owners = Phase.PENDING, "", {}
        info.adopted, info.pledged = frozenset(), {}
        info.count()

    def failed(self, reserve_pod: Pod, message: str) -> None:
        """Remember why no node was found."""
        self.touched.add(reserve_pod.reserve_pod_of)
        self.messages[reserve_pod.reserve_pod_of] = message

    def draw(self, pod: Pod, info: ReservationInfo | None) -> None:
        """Let a pod that is about to be placed draw on a reservation, or on none."""
        pod.draws_on, pod.drawn_name = (info.spec.uid, info.spec.name) if info else ("", "")

    def step(self, info: ReservationInfo, now: float) -> bool:
        """Bring one phase to where it should be; whether it changed."""
        if info.phase.over:
            return False
        released = info.phase is not Phase.WAITING or self._released(info)
        there = info.node in self.columns.rows and not info.orphaned
        phase = lifecycle.advanced(info, now, node_exists=there, room_released=released)
        if phase is info.phase:
            return False
        self._turn(info, phase)
        return True

    def _released(self, info: ReservationInfo) -> bool:
        return preallocation.released(info, self.columns) and self._ready(info, self.columns)

    def status(self, info: ReservationInfo, now: float) -> Status:
        """The status to store."""
        return lifecycle.status(info, now, self.messages.get(info.spec.uid, ""))

    # What the columns report.

    def pod_placed(self, pod: Pod, row: int) -> None:
        """Count a pod that draws on a reservation, or is one."""
        if pod.operates:
            self._operate(pod, row)
        if pod.reserve_pod_of:
            return
        info = self.drawn(pod)
        if info is not None and info.row == row:
            info.owners[pod.key] = pod
            info.count()
            self._settle(info, info.not_held())

    def pod_removed(self, pod: Pod, row: int) -> None:
        """Stop counting such a pod; a reserve pod takes what it holds with it."""
        operating = self.operating.pop(pod.uid, None) if pod.operates else None
        if operating is not None and operating.row == row:
            self._lose(operating)
        if pod.reserve_pod_of:
            info = self.by_uid.get(pod.reserve_pod_of)
            if info is not None and info.row == row and info.reserve_pod is pod:
                self._lose(info)
            return
        info = self.drawn(pod)
        if info is not None and info.owners.pop(pod.key, None) is not None:
            self.touched.add(info.spec.uid)
            info.count()
            if info.row == row:
                self._settle(info, info.not_held())

    # The account.

    def _add(self, info: ReservationInfo) -> None:
        info.position, self._serial = self._serial, self._serial + 1
        self.by_uid[info.spec.uid] = self._by_name[info.spec.name] = info

    def _operate(self, pod: Pod, row: int) -> None:
        info = self.operating.get(pod.uid)
        if info is not None:
            info.reserve_pod = pod
        else:
            info = ReservationInfo(parsing.spec_of(pod), position=self._serial, operating=True)
            self._serial += 1
            self.operating[pod.uid] = info
            self._bind(info, pod, row, Phase.AVAILABLE)
        self.columns.touch(row)  # who may be there is another question now

    def _bind(
        self,
        info: ReservationInfo,
        reserve_pod: Pod,
        row: int,
        phase: Phase,
        adopted: tuple[Pod, ...] = (),
    ) -> None:
        """Hold room on a node; a reserve pod takes its place there, a running pod has one."""
        if adopted:
            info.adopted = frozenset(pod.uid for pod in adopted)
        if not info.operating:
            self.columns.place(reserve_pod, row)
        info.reserve_pod, info.row, info.phase = reserve_pod, row, phase
        info.node, info.orphaned, info.relief = reserve_pod.node, False, {}
        self._on_row.setdefault(row, {})[info.spec.uid] = info
        for pod in adopted:
            self.draw(pod, info)
        info.owners = {
            pod.key: pod
            for pod in self.columns.pods[row].values()
            if (pod.draws_on or pod.drawn_name) and self.drawn(pod) is info
        }
        info.count()
        if adopted:
            info.pledged = dict(info.allocated)
        self._settle(info, info.not_held())
        self.claims.add(info)

    def _turn(self, info: ReservationInfo, phase: Phase) -> None:
        """Enter another phase; a reservation that is over gives back what it holds."""
        if phase is info.phase:
            return
        info.phase = phase
        self.touched.add(info.spec.uid)
        if info.row < 0:
            return
        if phase.over:
            self._release(info)
        else:
            self._settle(info, info.not_held())
            self.claims.consider(info)

    def _remove(self, info: ReservationInfo) -> None:
        if info.row >= 0:
            self._release(info)
        del self.by_uid[info.spec.uid], self._by_name[info.spec.name]
        self.messages.pop(info.spec.uid, None)
        self.touched.discard(info.spec.uid)

    def _settle(self, info: ReservationInfo, not_held: Mapping[str, int]) -> None:
        """Take off its node what of the reserve pod's amounts is not held."""
        self.touched.add(info.spec.uid)
        if change := info.relieve(not_held):
            self.columns.adjust(info.row, change)

    def _release(self, info: ReservationInfo) -> None:
        if info.reserve_pod is not None and not info.operating:
            # The columns report the pod, which ends in ``_lose``.
            self.columns.remove(info.reserve_pod)
        else:
            self._lose(info)
        info.orphaned = False

    def _lose(self, info: ReservationInfo) -> None:
        """Its place goes now: undo what was taken off the node, and forget the node."""
        self._settle(info, {})
        self._on_row.get(info.row, {}).pop(info.spec.uid, None)
        self.claims.remove(info)
        info.row, info.orphaned = -1, True
