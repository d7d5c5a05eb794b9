"""Checks the files of a container that starts, repairs them, and journals what it was given.

Covers: the moment between a container's process and its first instruction. Does not cover: what it
should have (``tick``), the event of that moment (``handler``), inherited values (``apply.copies``).

Rules:
1. Its files count, not the answer that the runtime got.
2. What it was given has an original: what the runtime would have given it. That is in the journal
   before the container runs.
3. A container that uses resource claims has files of its own, and threads in a control group of its
   own: a pass writes and moves them before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import cast

from koordlet.agent import lifecycle
from koordlet.apply import copies, kinds
from koordlet.model import action, adjustment, cgroup, container_names, cpuset, knob, limits
from koordlet.model.record import dataclass
from koordlet.policy.cpu import shared_pools
from koordlet.workloads.nri import messages, session

#: The kernel's default of cpu.shares.
_SHARES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The adjustment of one container."""

    wanted: adjustment.Adjustment
    #: The container as the runtime would have made it.
    asked: messages.NriContainer


@dataclass(slots=True, kw_only=True)
class StartCheck:
    """Checks the containers of one agent's host as they start."""

    agent: lifecycle.Agent
    #: How many were right, were repaired before they ran, ran wrong.
    verified: int = 0
    repaired: int = 0
    wrong: int = 0
    #: Those of the last kind: id to a sentence.
    complaints: dict[str, str] = field(default_factory=dict)

    def on_start(
        self, heard: session.Heard, group: str, given: Given | None, settle: Callable[[], None]
    ) -> None:
        """Check a container before its first instruction; ``settle`` runs passes to repair it."""
        if self._claims(heard):
            # Rule 3.
            settle()
        wanted = self.wanted(group) or (given.wanted.cpus if given is not None else None)
        if wanted:
            self._check(heard, group, wanted, settle)
        if given is not None:
            for setting, original in self._settings(group, given):
                self._adopt(group, setting, original, given)
            scope, _, name = group.rpartition("/")
            # crun gives its weight to the scope around a container's group, too.
            if name == container_names.NESTED:
                for setting, original in self._shares(scope, given):
                    self._adopt(scope, setting, original, given)

    def forget(self, container: str) -> None:
        """Forget a container that has ended."""
        self.complaints.pop(container, None)

    def wanted(self, group: str) -> cpuset.CPUSet | None:
        """Give the CPUs that were decided for a container's group, or the nearest group above."""
        for path in (group, *cgroup.ancestors(group)):
            decided = parsed(self.agent.tick.decided(knob.CPUSET_CPUS, path) or "")
            if decided:
                return decided
        return None

    def cpus(self, group: str) -> cpuset.CPUSet | None:
        """Read the CPUs that a group's tasks may use; ``None`` where they cannot be read."""
        host, layout = self.agent.tick.host, self.agent.tick.observer.layout
        for row in (knob.CPUSET_EFFECTIVE, knob.CPUSET_CPUS):
            path = layout.file(row, group)
            try:
                allowed = parsed("" if path is None else host.text(host.at(path)))
            except OSError:
                continue
            if allowed:
                return allowed
        return None

    # Inside ---------------------------------------------------------------------------------------

    def _claims(self, heard: session.Heard) -> bool:
        """Whether a container uses resource claims."""
        return any(
            box.claims and box.name == heard.container.name
            for pod in self.agent.tick.observation.pods
            if pod.uid == heard.pod.uid
            for box in pod.containers
        )

    def _check(
        self, heard: session.Heard, group: str, wanted: cpuset.CPUSet, settle: Callable[[], None]
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
        name = f"{heard.pod.namespace}/{heard.pod.name}"
        self.complaints[heard.container.id] = (
            f"{name}: container {heard.container.name} began on CPUs {there}, not on {wanted}"
        )

    def _settings(self, group: str, given: Given) -> Iterator[tuple[limits.Setting, str]]:
        """Yield each file that it was given a value in, and the value without us (rule 2)."""
        layout, wanted, asked = self.agent.tick.observer.layout, given.wanted, given.asked
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
            yield from zip(mine, (setting.text for setting in theirs_too), strict=True)

    def _shares(self, group: str, given: Given) -> Iterator[tuple[limits.Setting, str]]:
        layout, asked = self.agent.tick.observer.layout, given.asked
        shares = given.wanted.cpu_shares
        if shares is not None:
            theirs = asked.shares if asked.shares > 0 else _SHARES
            ours = limits.cpu_shares(layout, group, shares)
            before = limits.cpu_shares(layout, group, theirs)
            yield from zip(ours, (setting.text for setting in before), strict=True)

    def _adopt(self, group: str, setting: limits.Setting, original: str, given: Given) -> None:
        """Rule 2."""
        if original and setting.row.same(setting.text, original):
            return
        policy = next(iter(given.wanted.reasons), shared_pools.STEM)
        write = action.WriteFile(
            target=setting.path,
            value=setting.text,
            policy=policy,
            reason=given.wanted.reasons.get(policy, ""),
            knob=setting.row.name,
            group=group,
        )
        tick = self.agent.tick
        units, layout = tick.observation.units, tick.observer.layout
        # A runtime with the systemd driver gave it to the unit, which would write it again.
        routed = units.route(layout, write) if units.manages(layout) else write
        file = cast("kinds.FileAction", routed)
        at = tick.clock().wall
        copies.adopt(tick.host, self.agent.book, file, original, unix_time=at, stays=True)
        if setting.row is knob.CPUSET_CPUS:
            cpus = parsed(original) or tick.observer.topology.online
            tick.announcements.on_adopt(group, cpus)

    def _inherited(self, row: knob.Knob, group: str) -> str:
        """Give what a container gets without a request: on v1 its pod's cpuset, on v2 none."""
        host, layout = self.agent.tick.host, self.agent.tick.observer.layout
        holder = layout.holder("cpuset")
        above = layout.file(row, group.rpartition("/")[0])
        if holder is None or holder.unified or above is None:
            return ""
        entry = self.agent.book.entries.get(above)
        if entry is not None and entry.original:
            return entry.original
        return host.text(host.at(above)).strip()


def _limit(number: int) -> int | None:
    """Decode a runtime's limit: 0 or less is none."""
    return number if number > 0 else None


def parsed(text: str) -> cpuset.CPUSet | None:
    """Parse a CPU list; ``None`` where it names no CPU."""
    return cpuset.lenient(text.strip()) or None
