"""resctrl: cache ways and memory bandwidth of each class, and of pods with an annotation.

Covers: which groups there shall be, what their ``schemata`` say, whose threads are in which.
Does not cover: the values (``shares``), the writes (``apply.resctrl``), when a neighbour is
noisy (``pressure``).

Rules:
1. Groups are ``LSR`` (LSE joins it), ``LS`` and ``BE``, named as the peers name them,
   ``koordlet-claim-<uid>`` for a prepared resource claim of cache, and ``koordlet-<uid>`` for a pod
   with the annotation. Any other group is foreign: it is never written, nor are threads taken out
   of it.
2. Classes of service are scarce. They go to BE (its limit protects all others), LSR, LS, then
   claims by their time, then pods by class and name. A pod without one stays in its class's group,
   a class without one in the root group; a condition names both.
3. A NodeSLO's ``resctrlQOS`` replaces the configuration; a class that it does not enable has no
   group.
4. A value that the kernel would refuse becomes a condition and is not written; all other domains
   and classes are.
5. ``tighten`` halves the bandwidth of a noisy neighbour at each reading of the counters, and raises
   it again step by step. That slows best-effort work and stops nothing, so it comes before taking
   CPUs away.

* Formula: ways = from start% to end% of the ways, both rounded up; bandwidth = percent of full
* Writes: groups below the resctrl mount: directories, `schemata`, `tasks`; the mount itself
* See: `koordlet resctrl`, the panel of cache ways
* Off: its groups are removed and threads go back; a mount of ours is unmounted
* More: resctrl.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from koordlet.history import series
from koordlet.model import (
    action,
    adjustment,
    decision,
    knob,
    plan,
    qos,
    resctrl,
    schemata,
    snapshot,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals, saved_state
from koordlet.policy.resctrl import annotation, claimed_ways, pressure, shares, tasks
from koordlet.policy.resctrl import values as resctrl_values
from koordlet.policy.resctrl.shares import Want

STEM = "resctrl"

#: Who keeps a class of service where there are too few.
KEEP = ("BE", "LSR", "LS")
_PREFIX = "koordlet-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    #: Group of a class to what it shall have; a class that is not here has no group.
    classes: Mapping[str, annotation.Wish] = field(
        default_factory=lambda: {
            "LSR": annotation.Wish(ways=(0, 100), percent=100),
            "LS": annotation.Wish(ways=(0, 100), percent=100),
            "BE": annotation.Wish(ways=(0, 30), percent=100),
        }
    )
    #: Mount the file system where it is not, with these options.
    mount: bool = False
    mount_options: tuple[str, ...] = ()
    #: GB/s of one domain, for percentages on AMD and with ``mba_MBps``.
    bandwidth: float | None = None
    #: The peer's exact numbers.
    peer: bool = False
    #: A monitoring group for each pod, as far as there are RMIDs.
    pod_monitoring: bool = False
    #: At most this many of them.
    most_monitors: int = 32
    #: GB/s of slow memory (SMBA) in one domain; ``None`` leaves it without limits.
    slow_bandwidth: float | None = None
    #: Containers that a runtime makes get their class from it, before they begin.
    runtime_classes: bool = False
    #: Cache levels that the ranges are about.
    levels: tuple[int, ...] = (3,)
    #: Parts of the machine that classes live in; a class in none has its share of the whole.
    partitions: tuple[resctrl_values.Partition, ...] = ()
    #: Less bandwidth for best-effort work while it takes that of others.
    tighten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State kept between ticks."""

    #: Whether it was mounted when we last looked.
    mounted: bool = False
    #: ``MB:0`` to the largest value ever seen there: a group is born unlimited.
    unlimited: Mapping[str, int] = field(default_factory=dict)
    #: What best-effort work may have in percent, where that is less than was asked for.
    tightened: int | None = field(default=None, metadata=saved_state.within(1, 100))
    #: When that was last thought about: as often as the counters are read.
    stepped: float = field(default=0.0, metadata=saved_state.UNKEPT)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide groups, their schemata and their threads."""
    deciding = _Deciding(now, settings, state)
    if now.resctrl is None:
        deciding.unmounted()
    else:
        deciding.mounted(now.resctrl)
    # What others feel changes by itself.
    return deciding.decided(deciding.next_state, lasting=not settings.tighten)


def admit(
    now: snapshot.Snapshot, settings: Settings, _state: State, pod: pods.Pod, container: str
) -> adjustment.Adjustment:
    """Assign a starting container to the resctrl group of its class, where it exists.

    A runtime that is told of a group which is not there, or takes no tasks, does not start the
    container. Nor does runc where it finds neither ``info/L3`` nor ``info/MB`` (libcontainer,
    ``intelrdt``): L2 alone, or code and data apart (CDP) without bandwidth, are no resource
    control to it.
    """
    there = now.resctrl
    if not settings.runtime_classes or there is None:
        return adjustment.Adjustment()
    if there.hardware.cache("L3") is None and there.hardware.bandwidth("MB") is None:
        return adjustment.Adjustment()
    claimed = claimed_ways.group(now, pod, container)
    for name in (claimed, f"{_PREFIX}{pod.uid}", qos.SLO_CLASS.get(pod.qos, "")):
        if name and name in there.groups and not _locked(there.groups[name]):
            return adjustment.Adjustment(
                resctrl_class=name, reasons={STEM: f"{pod.key} belongs to {name}"}
            )
    return adjustment.Adjustment()


class _Deciding(proposals.Proposal):
    """Builds one decision."""

    def __init__(self, now: snapshot.Snapshot, settings: Settings, state: State) -> None:
        super().__init__(STEM, now)
        self.settings = settings
        self.next_state = state

    def _mount(self, where: str) -> None:
        if self.settings.mount:
            self.actions.append(
                action.Mount(
                    target=where,
                    fstype="resctrl",
                    options=",".join(self.settings.mount_options),
                    policy=STEM,
                    reason="policies.resctrl.mount asks for it",
                )
            )

    def unmounted(self) -> None:
        """Decide for a machine without a resctrl mount."""
        if any(gap.feature == STEM and "not mounted" in gap.why for gap in self.now.unsupported):
            self._mount(resctrl.MOUNT_POINT)
        if self.next_state.mounted:
            self.say("ResctrlUnmounted", "resctrl was unmounted while in use; mount it again")
            if self.settings.mount:
                self._mount(resctrl.MOUNT_POINT)

    def mounted(self, there: resctrl.Resctrl) -> None:
        """Decide the groups of a mounted resctrl file system."""
        self._mount(there.mount)
        missing = set(self.settings.mount_options) - set(there.options)
        if self.settings.mount and missing:
            self.say(
                "ResctrlMountOptions",
                f"another program mounted resctrl without {','.join(sorted(missing))}: unmount it",
            )
        self.next_state = replace(self.next_state, mounted=True, unlimited=self._unlimited(there))
        if not self.now.pods:
            return
        kept = self._fitting(there, self._wanted())
        sharing = shares.Sharing(
            there=there,
            levels=self.settings.levels,
            bandwidth=self.settings.bandwidth,
            slow_bandwidth=self.settings.slow_bandwidth,
            peer=self.settings.peer,
            partitions=self.settings.partitions,
            unlimited=self.next_state.unlimited,
            wanted=kept,
            say=self.say,
        )
        for want in kept:
            self._group(there, want, sharing)
        placing = tasks.Placing(
            there,
            [want.name for want in kept],
            self.settings.most_monitors if self.settings.pod_monitoring else 0,
        )
        own = {want.pod.uid: want.name for want in kept if want.pod is not None}
        boxes, groups = claimed_ways.workloads(self.now)
        self.actions.extend(placing.place((*self.now.pods, *boxes), {**own, **groups}))
        for subject, message in placing.left:
            self.say("ResctrlForeignGroup", message, subject)

    def _unlimited(self, there: resctrl.Resctrl) -> Mapping[str, int]:
        seen = dict(self.next_state.unlimited)
        for resource in there.hardware.bandwidths:
            for domain, value in resource.unlimited.items():
                key = f"{resource.name}:{domain}"
                seen[key] = max(value, seen.get(key, 0))
        return seen

    # Which groups --------------------------------------------------------------------------------

    def _wanted(self) -> list[Want]:
        classes = self._tightened(self._classes())
        wanted = [Want(name=name, wish=classes[name]) for name in KEEP if name in classes]
        wanted += claimed_ways.wanted(self.now.claims)
        order = list(qos.Qos)
        for pod in sorted(self.now.pods, key=lambda p: (order.index(p.qos), p.key, p.uid)):
            text = pod.annotations.get(annotation.KEY)
            if text is None:
                continue
            wish, problems = annotation.parse(text)
            for problem in problems:
                self.say("MalformedPod", f"{annotation.KEY}: {problem}", pod.key)
            safe = bool(pod.uid) and pod.uid.isprintable() and "/" not in pod.uid
            if wish != annotation.Wish() and safe:
                # What it asks nothing of is as of a class without limits: a group is born with the
                # ways of everybody, and a limit of before stays until another one is written.
                whole = replace(wish, ways=wish.ways or (0, 100), percent=_whole(wish.percent))
                wanted.append(Want(name=f"{_PREFIX}{pod.uid}", wish=whole, pod=pod))
        return wanted

    def _classes(self) -> Mapping[str, annotation.Wish]:
        """Rule 3."""
        slo = self.now.cluster_slo
        if slo is None:
            return self.settings.classes
        strategies = {name: slo.classes[name].resctrl for name in KEEP if name in slo.classes}
        return {
            name: annotation.Wish(
                ways=(qos_class.cat_range_start_percent or 0, qos_class.cat_range_end_percent or 0),
                percent=_whole(qos_class.mba_percent),
            )
            for name, qos_class in strategies.items()
            if qos_class.enable
        }

    def _tightened(self, classes: Mapping[str, annotation.Wish]) -> Mapping[str, annotation.Wish]:
        """Rule 5."""
        best_effort = classes.get("BE")
        if not self.settings.tighten or best_effort is None:
            self.next_state = replace(self.next_state, tightened=None)
            return classes
        most = best_effort.percent or 100
        percent = min(most, self.next_state.tightened or most)
        if self.now.at - self.next_state.stepped >= pressure.PERIOD:
            percent = pressure.tightened(percent, pressure.of(self.now), most=most)
            self.next_state = replace(self.next_state, stepped=self.now.at)
        kept = percent if percent < most else None
        self.next_state = replace(self.next_state, tightened=kept)
        if kept is None:
            return classes
        self.why["tightened"] = (
            f"noisy neighbour: BE bandwidth reduced from {most} % to {percent} %"
        )
        return {**classes, "BE": replace(best_effort, percent=percent)}

    def _fitting(self, there: resctrl.Resctrl, wanted: Sequence[Want]) -> Sequence[Want]:
        """The wanted groups that fit beside foreign groups and the root."""
        names = {want.name for want in wanted}
        foreign = [
            name
            for name, group in there.groups.items()
            if name and name not in names and group.takes_class
        ]
        room = max(0, there.hardware.most_groups - 1 - len(foreign))
        for want in wanted[room:]:
            subject = want.subject if want.pod or want.claim else "node"
            stays = (
                f"the group of {qos.SLO_CLASS.get(want.pod.qos)}" if want.pod else "the root group"
            )
            self.say(
                "ResctrlNoRoom",
                f"no resctrl group {want.name}: the machine has {there.hardware.most_groups} groups"
                f" (classes of service, RMIDs), {len(foreign)} of them foreign and one the root;"
                f" tasks stay in {stays}",
                subject,
            )
        return wanted[:room]

    # One group -----------------------------------------------------------------------------------

    def _group(self, there: resctrl.Resctrl, want: Want, sharing: shares.Sharing) -> None:
        subject = want.subject
        target = there.file(want.name, "")
        here = there.groups.get(want.name)
        reason = f"group of {subject}"
        self.actions.append(action.MakeDir(target=target, policy=STEM, reason=reason))
        if here is not None and _locked(here):
            self.say(
                "ResctrlForeignGroup",
                f"group is {here.mode}: koordlet leaves it unchanged",
                want.name,
            )
            return
        values, how = sharing.values(want)
        text = schemata.text(values)
        self.why[want.name] = "; ".join(how)
        if text:
            path, reason = there.file(want.name, "schemata"), f"{subject}: {'; '.join(how)}"
            self.write(path, text, reason, knob=knob.SCHEMATA.name)


def _whole(percent: int | None) -> int:
    """A percentage that nobody gave is all of it."""
    return 100 if percent is None else percent


def _locked(group: resctrl.Group) -> bool:
    """Whether a group is pseudo-locked and takes no tasks."""
    return group.mode.startswith("pseudo-lock")


POLICY = declaration.Policy(
    stem=STEM,
    summary="cache ways and memory bandwidth of each class of workload",
    protects="it limits what best-effort work takes of caches and memory bandwidth",
    decide=decide,
    settings=Settings(),
    state=State(),
    kept=State,
    admit=admit,
    timeless=True,
    default_mode=plan.Mode.SHADOW,
)
