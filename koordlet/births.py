"""What a container begins with: read, put right, and remembered as ours.

Covers: the moment between a container's process and its first instruction. Does not cover: what it
shall have (``Line``), who tells of that moment (``admitting``).

Rules:
1. What counts is what its files say, not what was answered.
2. What it was given has an original: what the runtime would have given it. That is in the journal
   before the container runs. What is inherited is seen to elsewhere (``apply.copies``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from koordlet import agent
from koordlet.model import action, adjustment, cgroup, cpuset, knob
from koordlet.policy import shared_pools
from koordlet.workloads.nri import session


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one container was given."""

    group: str
    wanted: adjustment.Adjustment
    #: What the runtime would have given it.
    asked: str


@dataclass(slots=True, kw_only=True)
class Births:
    """The containers of one agent's machine, as they begin."""

    who: agent.Agent
    #: How many were as they should be, were put right before they ran, were not.
    verified: int = 0
    repaired: int = 0
    wrong: int = 0
    #: Those of the last kind: id to a sentence.
    complaints: dict[str, str] = field(default_factory=dict)

    def begins(
        self, one: session.Heard, group: str, given: Given | None, settle: Callable[[], None]
    ) -> None:
        """Its process is there, and nothing of its image has run. ``settle`` passes the line."""
        wanted = self.wanted(group) or (given.wanted.cpus if given is not None else None)
        if wanted:
            self._check(one, group, wanted, settle)
        if given is not None and given.wanted.cpus:
            self._adopt(group, given)

    def forget(self, container: str) -> None:
        """It has ended."""
        self.complaints.pop(container, None)

    def wanted(self, group: str) -> cpuset.CPUSet | None:
        """The CPUs that were decided for a container's group, or for the nearest one above."""
        for path in (group, *cgroup.ancestors(group)):
            found = parsed(self.who.line.decided(knob.CPUSET_CPUS, path) or "")
            if found:
                return found
        return None

    def cpus(self, group: str) -> cpuset.CPUSet | None:
        """The CPUs that a group's tasks may use now; ``None`` where they cannot be read."""
        line = self.who.line
        for row in (knob.CPUSET_EFFECTIVE, knob.CPUSET_CPUS):
            where = line.observer.layout.file(row, group)
            try:
                found = parsed("" if where is None else line.host.text(line.host.at(where)))
            except OSError:
                continue
            if found:
                return found
        return None

    # Inside ---------------------------------------------------------------------------------------

    def _check(
        self, one: session.Heard, group: str, wanted: cpuset.CPUSet, settle: Callable[[], None]
    ) -> None:
        """Rule 1."""
        there = self.cpus(group)
        if there is None or there <= wanted:
            self.verified += 1
            return
        settle()
        there, wanted = self.cpus(group), self.wanted(group) or wanted
        if there is None or there <= wanted:
            self.repaired += 1
            return
        self.wrong += 1
        who = f"{one.pod.namespace}/{one.pod.name}"
        self.complaints[one.container.id] = (
            f"{who}: container {one.container.name} began on CPUs {there}, not on {wanted}"
        )

    def _adopt(self, group: str, given: Given) -> None:
        """Rule 2."""
        line, wanted = self.who.line, given.wanted
        target = line.observer.layout.file(knob.CPUSET_CPUS, group)
        if target is None:
            return
        policy = next(iter(wanted.reasons), shared_pools.STEM)
        one = action.WriteFile(
            target=target,
            value=str(wanted.cpus),
            policy=policy,
            reason=wanted.reasons.get(policy, ""),
            knob=knob.CPUSET_CPUS.name,
            group=group,
        )
        original = given.asked or self._inherited(group)
        self.who.adopt(one, original)
        line.born = {**line.born, group: parsed(original) or line.observer.topology.online}

    def _inherited(self, group: str) -> str:
        """What a container gets that asks for nothing: on v1 its pod's set, on v2 no set at all."""
        line = self.who.line
        holder = line.observer.layout.holder("cpuset")
        above = line.observer.layout.file(knob.CPUSET_CPUS, group.rpartition("/")[0])
        if holder is None or holder.unified or above is None:
            return ""
        entry = self.who.book.entries.get(above)
        if entry is not None and entry.original:
            return entry.original
        return line.host.text(line.host.at(above)).strip()


def parsed(text: str) -> cpuset.CPUSet | None:
    """The CPUs of a text; ``None`` where it names none."""
    try:
        return cpuset.CPUSet.parse(text.strip()) or None
    except ValueError:
        return None
