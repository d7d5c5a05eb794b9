"""Handles the events of the container runtime: adjusts new containers, keeps its record right.

Covers: each event's meaning, checking the effect of an adjustment, updates of the runtime's record.
Does not cover: the connection (``workloads.nri.plugin``), deciding (``Tick.adjust``), when to stop
adjusting (``workloads.nri.trust``).

Rules:
1. A pod is announced when its sandbox exists and none of its containers does: one pass narrows its
   group, and containers inherit that. The container itself is given only what it would not inherit.
2. Nothing is believed: the files of a container that is about to run are read. Where they are
   wrong, a pass repairs them before its first instruction.
3. A setting that a container starts with by our doing has an original: what the runtime would have
   given. It is in the journal before the container runs, and is put back like any other.
4. The runtime keeps a record of what it gave, and writes it again with every update. Where that
   record names CPUs, we update it after each write; an update that asks for others, as the
   kubelet's CPU manager does once, gets what was decided, and what it asked for becomes the
   original. One that gets what it asks for has the last word, also after our own last update. On v2
   the kernel cuts the request of a container that only inherits, and we leave it.
5. A v1 kernel refuses a request for CPUs outside of the pod's group, and the container does not
   start: it gets what was decided, even after we ceased to adjust. A container that was created and
   never started is reported, where something was decided around it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from koordlet.agent import lifecycle
from koordlet.agent.nri import start_check
from koordlet.apply import kinds
from koordlet.model import (
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
#: Passes until the groups of a new pod are as decided.
_SETTLE = 3
_SHARES, _MILLI = 1024, 1000
#: Containers that never started and are reported at once.
_MOST = 32


@dataclass(slots=True, kw_only=True)
class NriHandler:
    """Answers one runtime. Everything here happens in the agent's event loop."""

    agent: lifecycle.Agent
    trust: trust.StartTrust
    #: No source but the runtime says which pods run here.
    alone: bool
    #: Runs one pass now; whether it changed anything.
    run_pass: Callable[[], bool]
    #: Updates the runtime's record of a container; ``False`` where the runtime cannot be reached.
    update: Callable[[str, adjustment.Adjustment], bool]
    clock: Callable[[], float] = time.time
    check: start_check.StartCheck
    #: Updates that got other CPUs than they asked for.
    kept: int = 0
    #: Adjusted containers that never started and count against us.
    failed: int = 0
    adjusted: int = 0
    #: Ids of the containers that the runtime has reported.
    known: set[str] = field(default_factory=set)
    #: Whether it answers: after the first pass, until everything is put back.
    answers: bool = False
    #: Set once the runtime has reported the running pods.
    synchronized: asyncio.Event = field(default_factory=asyncio.Event)
    #: Containers that never started, by pod and name: a sentence for each.
    unstarted: dict[str, str] = field(default_factory=dict)
    _creating: set[str] = field(default_factory=set)
    _given: dict[str, start_check.Given] = field(default_factory=dict)
    _pods: set[str] = field(default_factory=set)
    #: Groups of containers in whose record the runtime has CPUs, to their ids.
    _recorded: dict[str, str] = field(default_factory=dict)
    #: Containers to the CPUs of our last update of the runtime's record.
    _updated: dict[str, cpuset.CPUSet] = field(default_factory=dict)
    #: Groups of containers to the CPUs that the last update asked for.
    _asked: dict[str, str] = field(default_factory=dict)

    def on_event(self, heard: session.Heard) -> adjustment.Adjustment:
        """Answer one event with what to change about its container."""
        if not self.answers:
            self._leave_last_word(heard)
            return _NOTHING
        try:
            return self._on_event(heard)
        except Exception as error:
            # The container starts as it is; the runtime does not log why, so this does.
            publisher = self.agent.publisher
            publisher.repeats.say(
                publisher.log.error,
                "nri.failed",
                repr(error),
                what=heard.event.name,
                detail=repr(error),
            )
            raise

    def _on_event(self, heard: session.Heard) -> adjustment.Adjustment:
        container = heard.container.id
        if container:
            self.known.add(container)
        match heard.event:
            case NriEvent.RUN_POD_SANDBOX:
                self._on_sandbox(heard.pod)
            case NriEvent.CREATE_CONTAINER:
                return self._on_create(heard)
            case NriEvent.POST_CREATE_CONTAINER:
                self.trust.made(container)
            case NriEvent.START_CONTAINER:
                # A conflict of two plugins, or a refusal of the kernel, comes before this event.
                # POST_START may come after the end of a container that lives shortly.
                self.trust.started(container)
                self._creating.discard(container)
                self.unstarted.pop(_named(heard), None)
                self._on_start(heard)
            case NriEvent.UPDATE_CONTAINER:
                return self._on_update(heard)
            case NriEvent.STOP_CONTAINER | NriEvent.REMOVE_CONTAINER:
                self._on_end(heard)
            case NriEvent.REMOVE_POD_SANDBOX:
                self._pods.discard(heard.pod.uid)
                gone = f"{heard.pod.namespace}/{heard.pod.name} "
                self.unstarted = {
                    name: why for name, why in self.unstarted.items() if not name.startswith(gone)
                }
                self.agent.tick.announcements.pods.departed(heard.pod.uid)
            case _:
                pass
        return _NOTHING

    def on_timeout(self, heard: session.Heard) -> None:
        """Forget an event whose answer came too late: the runtime changed nothing."""
        self._given.pop(heard.container.id, None)
        self.trust.forget(heard.container.id)

    def on_synchronize(
        self, pods: Sequence[messages.NriPod], containers: Sequence[messages.NriContainer]
    ) -> None:
        """Take what runs already, as a new connection begins."""
        self.known |= {box.id for box in containers}
        uids = {sandbox.id: sandbox.uid for sandbox in pods}
        started = {(uids.get(box.pod, ""), box.name): box.id for box in containers}
        self.agent.tick.announcements.on_synchronize(started)
        for box in containers:
            self._record(box)
        if self.alone:
            listed = {sandbox.uid for sandbox in pods}
            for gone in self._pods - listed:
                self.agent.tick.announcements.pods.departed(gone)
            self._pods &= listed
            for sandbox in pods:
                self._announce(sandbox)
        self.synchronized.set()

    def answer(self, *, on: bool) -> None:
        """Begin or cease to answer."""
        self.answers = on

    def expire(self) -> None:
        """Count the adjusted containers that have not started in time."""
        self.failed += self.trust.overdue(self.clock())

    def on_results(self, results: Sequence[result.Result]) -> None:
        """Update the runtime's record after each write (rule 4)."""
        for outcome in results:
            did = outcome.step.action if outcome.step is not None else None
            if (
                outcome.verdict is result.Verdict.DONE
                and isinstance(did, kinds.FILES)
                and did.knob == knob.CPUSET_CPUS.name
                and did.group in self._recorded
            ):
                cpus = start_check.parsed(did.value)
                if cpus:
                    self._update(self._recorded[did.group], cpus)
                    self._note_asked(did.group)

    def _update(self, container: str, cpus: cpuset.CPUSet) -> None:
        self._updated[container] = cpus
        self.update(container, adjustment.Adjustment(cpus=cpus))

    def _note_asked(self, group: str) -> None:
        """What was asked for last is the original, also where a write of ours has overtaken it."""
        path = self.agent.tick.observer.layout.file(knob.CPUSET_CPUS, group)
        entry, asked = self.agent.book.entries.get(path or ""), self._asked.get(group)
        if entry and asked and entry.original != asked:
            self.agent.book.note(entry._replace(original=asked))

    def _leave_last_word(self, heard: session.Heard) -> None:
        """The runtime may apply our last update of its record after the one that it asks about."""
        container, asked = heard.container.id, start_check.parsed(heard.cpus)
        if asked and self._updated.get(container, asked) != asked:
            self._update(container, asked)

    def _on_sandbox(self, sandbox: messages.NriPod) -> None:
        """Rule 1."""
        if self._announce(sandbox) is not None and self.agent.enforce:
            self._settle()

    def _announce(self, sandbox: messages.NriPod) -> pod.Pod | None:
        newcomer = self._pod(sandbox)
        if newcomer is not None:
            self._pods.add(sandbox.uid)
            tick = self.agent.tick
            tick.announcements.pods.add(newcomer, tick.clock().at, for_good=self.alone)
        return newcomer

    def _settle(self) -> None:
        for _ in range(_SETTLE):
            if not self.run_pass():
                return

    def _pod(self, sandbox: messages.NriPod) -> pod.Pod | None:
        """Find a pod among the workloads, else decode it; ``None`` below another cgroup root."""
        group = self._group(sandbox.cgroup_parent)
        if group is None:
            return None
        for known in self.agent.tick.observation.pods:
            same = known.uid == sandbox.uid or known.group == group
            if same or known.match == f"cgroup={group}":
                return replace(known, group=known.group or group)
        kube_qos = grouppath.parse(group).kube_qos
        body = {
            "metadata": {
                "name": sandbox.name,
                "namespace": sandbox.namespace,
                "uid": sandbox.uid,
                "labels": dict(sandbox.labels),
                "annotations": dict(sandbox.annotations),
            },
            "spec": {},
            "status": {"phase": "Running", "qosClass": "" if kube_qos is None else kube_qos.value},
        }
        decoded = poddecode.from_object(body, SOURCE, f"{sandbox.namespace}/{sandbox.name}")
        milli = sandbox.cpu_shares * _MILLI // _SHARES
        requests = {resources.CPU: milli} if sandbox.cpu_shares > 0 else {}
        return replace(decoded, group=group, match=f"cgroup={group}", requests=requests)

    def _group(self, text: str) -> str | None:
        holder = self.agent.tick.observer.layout.holder("cpuset")
        return None if holder is None else places.group(text, holder.base)

    def _home(self, text: str) -> str | None:
        """Give the group of a container that has a process: crun nests one in its scope."""
        group, host = self._group(text), self.agent.tick.host
        holder = self.agent.tick.observer.layout.holder("cpuset")
        if group is None or holder is None or not holder.unified:
            return group
        nested = container_names.home(group, (f"{group}/{container_names.NESTED}",))
        return nested if host.exists(host.at(holder.directory(nested))) else group

    def _on_create(self, heard: session.Heard) -> adjustment.Adjustment:
        box, uid, now = heard.container, heard.pod.uid, self.clock()
        if uid not in self._pods:
            # Its sandbox was created before we were connected.
            self._on_sandbox(heard.pod)
        newcomer = self._pod(heard.pod)
        if newcomer is None or not self.agent.enforce:
            return _NOTHING
        wanted = _NOTHING
        if self.trust.may(uid, box.name, now):
            wanted = self.agent.tick.adjust(self.agent, newcomer, box.name)
            wanted = self._fitted(wanted, newcomer.group)
        wanted = self._inside(wanted, box.cpus, newcomer.group)
        self._creating.add(box.id)
        self.trust.answered(box.id, uid, box.name, adjusted=not wanted.empty, now=now)
        group = self._group(box.cgroup)
        if not wanted.empty and group is not None:
            self.adjusted += 1
            self._given[box.id] = start_check.Given(wanted=wanted, asked=box)
            self.agent.publisher.log.info(
                "nri.adjusted",
                pod=newcomer.key,
                container=box.name,
                cpus=None if wanted.cpus is None else str(wanted.cpus),
                reasons=dict(wanted.reasons),
            )
        return wanted

    def _fitted(self, wanted: adjustment.Adjustment, group: str | None) -> adjustment.Adjustment:
        """Cut an adjustment to the CPUs of the pod's group: a v1 kernel would refuse more."""
        room = None if group is None else self.check.cpus(group)
        if wanted.cpus is None or room is None:
            return wanted
        cpus = wanted.cpus & room
        return replace(wanted, cpus=None if not cpus or cpus == room else cpus)

    def _inside(
        self, wanted: adjustment.Adjustment, cpus: str, around: str | None
    ) -> adjustment.Adjustment:
        """Replace a request for CPUs that the group ``around`` does not have (rule 5)."""
        asked = start_check.parsed(cpus)
        if asked is None or wanted.cpus is not None or around is None or self._unified():
            return wanted
        room = self.check.cpus(around)
        if room is None or asked <= room:
            return wanted
        decided = (self.check.wanted(around) or room) & room or room
        why = {shared_pools.STEM: f"{asked} was asked for, the pod's group has {room}"}
        return replace(wanted, cpus=asked & decided or decided, reasons={**wanted.reasons, **why})

    def _on_start(self, heard: session.Heard) -> None:
        """Rules 2 and 3: its process exists, and no instruction of its image has run."""
        box = heard.container
        group = self._home(box.cgroup)
        if group is not None and self.agent.enforce:
            self.agent.tick.announcements.on_start(heard.pod.uid, box.name, box.id)
            self.check.on_start(heard, group, self._given.get(box.id), self._settle)
            self._record(box)

    def _on_update(self, heard: session.Heard) -> adjustment.Adjustment:
        """Rule 4: another program asks for other CPUs."""
        group, asked = self._home(heard.container.cgroup), start_check.parsed(heard.cpus)
        if group is None or not asked or not self.agent.enforce:
            return _NOTHING
        self._recorded[group] = heard.container.id
        self._asked[group] = str(asked)
        wanted = self.check.wanted(group)
        answer = _NOTHING
        if wanted and not asked <= wanted and not self._cut_above(group):
            answer = adjustment.Adjustment(cpus=asked & wanted or wanted)
        around = self._group(heard.container.cgroup)
        around = None if around is None else around.rpartition("/")[0]
        answer = self._inside(answer, heard.cpus, around)
        if not answer.empty:
            self.kept += 1
            self._note_asked(group)
        else:
            self._leave_last_word(heard)
        return answer

    def _cut_above(self, group: str) -> bool:
        """Whether the group above cuts a request: ours would be a set that nobody puts back."""
        return self._unified() and not self.agent.tick.decided(knob.CPUSET_CPUS, group)

    def _unified(self) -> bool:
        return self.agent.tick.observer.layout.unified("cpuset")

    def _on_end(self, heard: session.Heard) -> None:
        container = heard.container.id
        self.failed += self.trust.ended(container, self.clock())
        self.check.forget(container)
        self._given.pop(container, None)
        self._updated.pop(container, None)
        for path in [path for path, known in self._recorded.items() if known == container]:
            del self._recorded[path]
            self._asked.pop(path, None)
        group = self._group(heard.container.cgroup)
        if container in self._creating:
            self._creating.discard(container)
            around = self.check.wanted(group) if group is not None else None
            if around and self.agent.enforce:
                self._report_unstarted(heard, around)
        self.agent.tick.announcements.on_end(container, group)
        if heard.event is NriEvent.REMOVE_CONTAINER:
            self.known.discard(container)

    def _report_unstarted(self, heard: session.Heard, around: cpuset.CPUSet) -> None:
        """Rule 5; one sentence for each container of each pod, and at most ``_MOST``."""
        name = _named(heard)
        self.unstarted.pop(name, None)
        self.unstarted[name] = (
            f"{name}: created and never started. It asked for CPUs"
            f" {heard.container.cpus or 'none'}, CPUs {around} were decided for the group around"
            " it. The events of the pod have the runtime's reason"
        )
        self.unstarted = dict(list(self.unstarted.items())[-_MOST:])
        publisher = self.agent.publisher
        publisher.repeats.say(
            publisher.log.warning, "nri.unstarted", name, detail=self.unstarted[name]
        )

    def _record(self, box: messages.NriContainer) -> None:
        group = self._home(box.cgroup)
        if group is not None and box.cpus:
            self._recorded[group] = box.id


def _named(heard: session.Heard) -> str:
    """Name a container by pod and name, which stay when it is created again."""
    return f"{heard.pod.namespace}/{heard.pod.name} container {heard.container.name}"
