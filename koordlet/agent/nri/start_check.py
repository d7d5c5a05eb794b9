"""What a container begins with: read, put right, and remembered as ours.

Covers: the moment between a container's process and its first instruction. Does not cover: what it
shall have (``Line``), who tells of that moment (``handler``).

Rules:
1. What counts is what its files say, not what was answered.
2. What it was given has an original: what the runtime would have given it. That is in the journal
   before the container runs. What is inherited is seen to elsewhere (``apply.copies``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from koordlet.agent import lifecycle
from koordlet.model import action, adjustment, cgroup, container_names, cpuset, knob, limits
from koordlet.model.record import dataclass
from koordlet.policy.cpu import shared_pools
from koordlet.workloads.nri import messages, session

#: What the kernel gives a group that nobody gives shares.
_SHARES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one container was given."""

    wanted: adjustment.Adjustment
    #: The container as the runtime would have made it.
    asked: messages.NriContainer


@dataclass(slots=True, kw_only=True)
class Births:
    """The containers of one agent's machine, as they begin."""

    who: lifecycle.Agent
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
        if given is not None:
            for setting, original in self._settings(group, given):
                self._adopt(group, setting, original, given)
            for scope in self._scope(group):
                for setting, original in self._shares(scope, given):
                    self._adopt(scope, setting, original, given)

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

    def _settings(self, group: str, given: Given) -> Iterator[tuple[limits.Setting, str]]:
        """Rule 2: each file that it was given something in, and what it would hold without us."""
        layout, wanted, asked = self.who.line.observer.layout, given.wanted, given.asked
        for row, value, theirs in (
            (knob.CPUSET_CPUS, wanted.cpus, asked.cpus),
            (knob.CPUSET_MEMS, wanted.mems, ""),
        ):
            path = layout.file(row, group)
            if value and path is not None:
                yield limits.Setting(row, path, str(value)), theirs or self._inherited(row, group)
        yield from self._shares(group, given)
        pairs: list[tuple[tuple[limits.Setting, ...], tuple[limits.Setting, ...]]] = []
        if wanted.cpu_milli is not None:
            ours = limits.cpu_quota(layout, group, _limit(wanted.cpu_milli))
            pairs.append((ours, limits.cpu_time(layout, group, _limit(asked.quota))))
        if wanted.memory_bytes is not None:
            ours = limits.memory_max(layout, group, _limit(wanted.memory_bytes))
            pairs.append((ours, limits.memory_max(layout, group, _limit(asked.memory))))
        for mine, theirs_too in pairs:
            yield from zip(mine, (one.text for one in theirs_too), strict=True)

    def _shares(self, group: str, given: Given) -> Iterator[tuple[limits.Setting, str]]:
        layout, shares, asked = self.who.line.observer.layout, given.wanted.cpu_shares, given.asked
        if shares is not None:
            theirs = asked.shares if asked.shares > 0 else _SHARES
            ours = limits.cpu_shares(layout, group, shares)
            before = limits.cpu_shares(layout, group, theirs)
            yield from zip(ours, (one.text for one in before), strict=True)

    def _scope(self, group: str) -> tuple[str, ...]:
        """The scope that crun has around a container's group, and gives its weight, too."""
        scope, _, name = group.rpartition("/")
        return (scope,) if name == container_names.NESTED else ()

    def _adopt(self, group: str, setting: limits.Setting, original: str, given: Given) -> None:
        """Rule 2."""
        if original and setting.row.same(setting.text, original):
            return
        policy = next(iter(given.wanted.reasons), shared_pools.STEM)
        one = action.WriteFile(
            target=setting.path,
            value=setting.text,
            policy=policy,
            reason=given.wanted.reasons.get(policy, ""),
            knob=setting.row.name,
            group=group,
        )
        self.who.adopt(one, original, stays=True)
        if setting.row is knob.CPUSET_CPUS:
            line = self.who.line
            line.born = {**line.born, group: parsed(original) or line.observer.topology.online}

    def _inherited(self, row: knob.Knob, group: str) -> str:
        """What a container gets that asks for nothing: on v1 its pod's set, on v2 no set at all."""
        line = self.who.line
        holder = line.observer.layout.holder("cpuset")
        above = line.observer.layout.file(row, group.rpartition("/")[0])
        if holder is None or holder.unified or above is None:
            return ""
        entry = self.who.book.entries.get(above)
        if entry is not None and entry.original:
            return entry.original
        return line.host.text(line.host.at(above)).strip()


def _limit(number: int) -> int | None:
    """A limit as a runtime says it: 0 or less is none."""
    return number if number > 0 else None


def parsed(text: str) -> cpuset.CPUSet | None:
    """The CPUs of a text; ``None`` where it names none."""
    try:
        return cpuset.CPUSet.parse(text.strip()) or None
    except ValueError:
        return None
