"""What the container runtime tells, as the agent takes it; what new containers get.

Covers: each event's meaning, checking what came of an answer, keeping the runtime's record right.
Does not cover: the connection (``workloads.nri.plugin``), deciding (``Agent.admit``), when to stop
adjusting (``workloads.nri.trust``).

Rules:
1. A pod is announced when its sandbox is there and none of its containers is: one pass narrows its
   group, and what starts inside inherits that. Only what a container would not inherit is given to
   the container itself.
2. Nothing is believed: when a container is about to run, its files are read. Where they are not as
   they shall be, a pass puts them right before its first instruction.
3. What a container began with by our doing has an original, too: what the runtime would have given.
   It is in the journal before the container runs, and is put back like any other.
4. The runtime keeps a record of what it gave, and writes it again with every update. Where that
   record names CPUs, it follows what we write later; an update that asks for other CPUs, as the
   kubelet's CPU manager does, gets those that were decided. On v2 one that only inherits is cut by
   the kernel, and left.
5. A request that names CPUs outside of its pod's group is refused by a v1 kernel, and the container
   does not start: it gets what was decided, also where we no longer adjust. One that was made and
   never started is told, where anything was decided around it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from koordlet.agent import lifecycle
from koordlet.agent.nri import start_check
from koordlet.model import (
    action,
    adjustment,
    container_names,
    cpuset,
    grouppath,
    knob,
    pod,
    resources,
    result,
)
from koordlet.model.record import dataclass
from koordlet.policy.cpu import shared_pools
from koordlet.workloads import poddecode
from koordlet.workloads.nri import messages, places, session, trust
from koordlet.workloads.nri.messages import NriEvent

SOURCE = "nri"
_NOTHING = adjustment.Adjustment()
#: Passes until a new pod's groups are as they shall be.
_SETTLE = 3
_SHARES, _MILLI = 1024, 1000
#: Containers that never started and are told.
_MOST = 32


@dataclass(slots=True, kw_only=True)
class Desk:
    """Answers one runtime. Everything here happens in the agent's loop."""

    who: lifecycle.Agent
    trust: trust.StartTrust
    #: Nobody but the runtime says which pods there are.
    alone: bool
    #: One pass of the line now; whether it changed anything.
    pass_now: Callable[[], bool] = lambda: False
    #: Tells the runtime what a container has now; ``False`` where it cannot be told.
    tell: Callable[[str, adjustment.Adjustment], bool] = lambda *_: False
    clock: Callable[[], float] = time.time
    newborn: start_check.Births
    #: Updates that got other CPUs than they asked for.
    kept: int = 0
    #: Adjusted containers that never started and count against us.
    failed: int = 0
    adjusted: int = 0
    #: Ids of the containers that the runtime told of.
    known: set[str] = field(default_factory=set)
    #: Whether it answers: after the first pass, until everything is put back.
    open: bool = False
    #: Set once it is known what is there.
    heard_of: asyncio.Event = field(default_factory=asyncio.Event)
    #: Containers that never started, by pod and name: a sentence for each.
    unstarted: dict[str, str] = field(default_factory=dict)
    _making: set[str] = field(default_factory=set)
    _given: dict[str, start_check.Given] = field(default_factory=dict)
    _pods: set[str] = field(default_factory=set)
    #: Groups of containers in whose record the runtime has CPUs, to their ids.
    _recorded: dict[str, str] = field(default_factory=dict)

    # The runtime tells ----------------------------------------------------------------------------

    def heard(self, one: session.Heard) -> adjustment.Adjustment:
        """What shall be changed about this."""
        if not self.open:
            return _NOTHING
        try:
            return self._heard(one)
        except Exception as error:
            # The container starts as it is; why is ours to say, since the runtime will not.
            teller = self.who.teller
            teller.repeats.say(
                teller.log.error,
                "nri.failed",
                repr(error),
                what=one.event.name,
                detail=repr(error),
            )
            raise

    def _heard(self, one: session.Heard) -> adjustment.Adjustment:
        box = one.container.id
        if box:
            self.known.add(box)
        match one.event:
            case NriEvent.RUN_POD_SANDBOX:
                self._arrived(one.pod)
            case NriEvent.CREATE_CONTAINER:
                return self._create(one)
            case NriEvent.POST_CREATE_CONTAINER:
                self.trust.made(box)
            case NriEvent.START_CONTAINER:
                # What two plugins quarrel about, or the kernel refuses, has failed before. The news
                # that it runs (POST_START) may come after that of its end, if its life is short.
                self.trust.started(box)
                self._making.discard(box)
                self.unstarted.pop(_who(one), None)
                self._begin(one)
            case NriEvent.UPDATE_CONTAINER:
                return self._update(one)
            case NriEvent.STOP_CONTAINER | NriEvent.REMOVE_CONTAINER:
                self._ended(one)
            case NriEvent.REMOVE_POD_SANDBOX:
                self._pods.discard(one.pod.uid)
                gone = f"{one.pod.namespace}/{one.pod.name} "
                self.unstarted = {
                    who: why for who, why in self.unstarted.items() if not who.startswith(gone)
                }
                self.who.line.newcomers.departed(one.pod.uid)
            case _:
                pass
        return _NOTHING

    def late(self, one: session.Heard) -> None:
        """The answer was "no change", whatever was decided."""
        self._given.pop(one.container.id, None)
        self.trust.forget(one.container.id)

    def found(
        self, pods: Sequence[messages.NriPod], boxes: Sequence[messages.NriContainer]
    ) -> None:
        """What is there already, as a new connection begins."""
        self.known |= {one.id for one in boxes}
        uids = {one.id: one.uid for one in pods}
        self.who.line.begun = {(uids.get(one.pod, ""), one.name): one.id for one in boxes}
        for one in boxes:
            self._record(one)
        if self.alone:
            self._replace(pods)
        self.heard_of.set()

    def _replace(self, pods: Sequence[messages.NriPod]) -> None:
        """These pods and no others are there."""
        for gone in self._pods - {one.uid for one in pods}:
            self.who.line.newcomers.departed(gone)
        self._pods &= {one.uid for one in pods}
        for each in pods:
            self._announce(each)

    # The line has done ----------------------------------------------------------------------------

    def done(self, results: Sequence[result.Result]) -> None:
        """Rule 4: the runtime's record follows what was written."""
        for one in results:
            did = one.step.action if one.step is not None else None
            if (
                one.verdict is result.Verdict.DONE
                and isinstance(did, action.WriteFile)
                and did.knob == knob.CPUSET_CPUS.name
                and did.group in self._recorded
            ):
                cpus = start_check.parsed(did.value)
                if cpus:
                    self.tell(self._recorded[did.group], adjustment.Adjustment(cpus=cpus))

    # Pods -----------------------------------------------------------------------------------------

    def _arrived(self, one: messages.NriPod) -> None:
        """Rule 1."""
        if self._announce(one) is not None and self.who.enforce:
            self._settle()

    def _announce(self, one: messages.NriPod) -> pod.Pod | None:
        found = self._pod(one)
        if found is not None:
            self._pods.add(one.uid)
            here = self.who.line
            here.newcomers.add(found, here.clock().at, for_good=self.alone)
        return found

    def _settle(self) -> None:
        for _ in range(_SETTLE):
            if not self.pass_now():
                return

    def _pod(self, one: messages.NriPod) -> pod.Pod | None:
        """As its own sources have it, else as the runtime does; ``None`` below another root."""
        group = self._group(one.cgroup_parent)
        if group is None:
            return None
        for known in self.who.line.pods:
            if known.uid == one.uid or known.group == group or known.match == f"cgroup={group}":
                return replace(known, group=known.group or group)
        kind = grouppath.parse(group).kube_qos
        body = {
            "metadata": {
                "name": one.name,
                "namespace": one.namespace,
                "uid": one.uid,
                "labels": dict(one.labels),
                "annotations": dict(one.annotations),
            },
            "spec": {},
            "status": {"phase": "Running", "qosClass": "" if kind is None else kind.value},
        }
        found = poddecode.from_object(body, SOURCE, f"{one.namespace}/{one.name}")
        asked = {resources.CPU: one.cpu_shares * _MILLI // _SHARES} if one.cpu_shares > 0 else {}
        return replace(found, group=group, match=f"cgroup={group}", requests=asked)

    def _group(self, text: str) -> str | None:
        holder = self.who.line.observer.layout.holder("cpuset")
        return None if holder is None else places.group(text, holder.base)

    def _home(self, text: str) -> str | None:
        """Where a container that has a process lives: crun nests a group in its scope."""
        group, host = self._group(text), self.who.line.host
        holder = self.who.line.observer.layout.holder("cpuset")
        if group is None or holder is None or not holder.unified:
            return group
        nested = container_names.home(group, (f"{group}/{container_names.NESTED}",))
        return nested if host.exists(host.at(holder.directory(nested))) else group

    # Containers -----------------------------------------------------------------------------------

    def _create(self, one: session.Heard) -> adjustment.Adjustment:
        box, uid, now = one.container, one.pod.uid, self.clock()
        if uid not in self._pods:
            # Its sandbox came while nobody listened.
            self._arrived(one.pod)
        newcomer = self._pod(one.pod)
        if newcomer is None or not self.who.enforce:
            return _NOTHING
        wanted = _NOTHING
        if self.trust.may(uid, box.name, now):
            wanted = self._fitted(self.who.admit(newcomer, box.name), newcomer.group)
        wanted = self._inside(wanted, box.cpus, newcomer.group)
        self._making.add(box.id)
        self.trust.answered(box.id, uid, box.name, adjusted=not wanted.empty, now=now)
        group = self._group(box.cgroup)
        if not wanted.empty and group is not None:
            self.adjusted += 1
            self._given[box.id] = start_check.Given(wanted=wanted, asked=box)
            self.who.teller.log.info(
                "nri.adjusted",
                pod=newcomer.key,
                container=box.name,
                cpus=None if wanted.cpus is None else str(wanted.cpus),
                reasons=dict(wanted.reasons),
            )
        return wanted

    def _fitted(self, wanted: adjustment.Adjustment, group: str | None) -> adjustment.Adjustment:
        """Cut to what the pod's group has at this moment: on v1 more would be refused at start."""
        room = None if group is None else self.newborn.cpus(group)
        if wanted.cpus is None or room is None:
            return wanted
        cpus = wanted.cpus & room
        return replace(wanted, cpus=None if not cpus or cpus == room else cpus)

    def _inside(
        self, wanted: adjustment.Adjustment, cpus: str, around: str | None
    ) -> adjustment.Adjustment:
        """Rule 5: something else than a request for CPUs that the group around does not have."""
        asked = start_check.parsed(cpus)
        if asked is None or wanted.cpus is not None or around is None or self._unified():
            return wanted
        room = self.newborn.cpus(around)
        if room is None or asked <= room:
            return wanted
        decided = (self.newborn.wanted(around) or room) & room or room
        why = {shared_pools.STEM: f"{asked} was asked for, the pod's group has {room}"}
        return replace(wanted, cpus=asked & decided or decided, reasons={**wanted.reasons, **why})

    def _begin(self, one: session.Heard) -> None:
        """Rules 2 and 3: its process is there, and nothing of its image has run."""
        group = self._home(one.container.cgroup)
        if group is not None and self.who.enforce:
            given, line = self._given.get(one.container.id), self.who.line
            line.begun = {**line.begun, (one.pod.uid, one.container.name): one.container.id}
            self.newborn.begins(one, group, given, self._settle)
            self._record(one.container)

    def _update(self, one: session.Heard) -> adjustment.Adjustment:
        """Rule 4: somebody asks for other CPUs."""
        group, asked = self._home(one.container.cgroup), start_check.parsed(one.cpus)
        if group is None or not asked or not self.who.enforce:
            return _NOTHING
        self._recorded[group] = one.container.id
        wanted = self.newborn.wanted(group)
        answer = _NOTHING
        if wanted and not asked <= wanted and not self._cut_above(group):
            answer = adjustment.Adjustment(cpus=asked & wanted or wanted)
        around = self._group(one.container.cgroup)
        around = None if around is None else around.rpartition("/")[0]
        answer = self._inside(answer, one.cpus, around)
        self.kept += not answer.empty
        return answer

    def _cut_above(self, group: str) -> bool:
        """On v2 a container that only inherits may ask for more: the group above cuts it.

        What it were given instead would be a set of its own that is nobody's to put back.
        """
        return self._unified() and not self.who.line.decided(knob.CPUSET_CPUS, group)

    def _unified(self) -> bool:
        holder = self.who.line.observer.layout.holder("cpuset")
        return holder is not None and holder.unified

    def _ended(self, one: session.Heard) -> None:
        box = one.container.id
        self.failed += self.trust.ended(box, self.clock())
        self.newborn.forget(box)
        self._given.pop(box, None)
        self._recorded = {path: known for path, known in self._recorded.items() if known != box}
        line, group = self.who.line, self._group(one.container.cgroup)
        if box in self._making:
            self._making.discard(box)
            around = self.newborn.wanted(group) if group is not None else None
            if around and self.who.enforce:
                self._never_started(one, around)
        if box in line.begun.values():
            line.begun = {who: known for who, known in line.begun.items() if known != box}
        if group is not None:
            below = f"{group}/"
            gone = {path for path in line.born if path == group or path.startswith(below)}
            if gone:
                line.born = {path: cpus for path, cpus in line.born.items() if path not in gone}
        if one.event is NriEvent.REMOVE_CONTAINER:
            self.known.discard(box)

    def _never_started(self, one: session.Heard, around: cpuset.CPUSet) -> None:
        """Rule 5; the newest of each container of each pod, and not more than anybody reads."""
        name = _who(one)
        self.unstarted.pop(name, None)
        self.unstarted[name] = (
            f"{name}: made and never started; decided around it are CPUs {around}, it asked for"
            f" {one.container.cpus or 'none'}: see the events of the pod for the runtime's reason"
        )
        self.unstarted = dict(list(self.unstarted.items())[-_MOST:])
        teller = self.who.teller
        teller.repeats.say(teller.log.warning, "nri.unstarted", name, detail=self.unstarted[name])

    def _record(self, box: messages.NriContainer) -> None:
        group = self._home(box.cgroup)
        if group is not None and box.cpus:
            self._recorded[group] = box.id


def _who(one: session.Heard) -> str:
    """A container by its names, which stay while it is made again and again."""
    return f"{one.pod.namespace}/{one.pod.name} container {one.container.name}"
