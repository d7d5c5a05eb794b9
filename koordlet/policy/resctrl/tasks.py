"""Assignment of threads to resctrl groups. Pure.

Covers: moves into control groups and into the monitoring groups of pods, what is left where it is.
Does not cover: which groups there are (``resctrl``), moving (``apply.resctrl``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from koordlet.model import action, qos, resctrl
from koordlet.model import pod as pods

_STEM = "resctrl"


class Placing:
    """One round of placing threads."""

    def __init__(self, there: resctrl.Resctrl, kept: Sequence[str], most_monitors: int) -> None:
        self.there = there
        self.kept = frozenset(kept)
        #: How many monitoring groups pods get at most; 0: none.
        self.most_monitors = most_monitors
        #: (workload, message) for threads that stay where somebody else put them.
        self.left: list[tuple[str, str]] = []

    def place(
        self, workloads: Sequence[pods.Pod], own: Mapping[str, str]
    ) -> Iterator[action.Action]:
        """Move actions of every group, complete. ``own`` maps a UID to its own group."""
        homes: dict[str, list[pods.Pod]] = {}
        for pod in sorted(workloads, key=lambda p: (p.key, p.uid)):
            if pod.group is not None:
                name = own.get(pod.uid) or qos.SLO_CLASS.get(pod.qos, "")
                homes.setdefault(name if name in self.kept else "", []).append(pod)
        for name in sorted(homes):
            yield from self._move(name, homes[name])
        if self.most_monitors and self.there.hardware.monitoring is not None:
            yield from self._monitors(homes)

    def _move(self, name: str, pods: Sequence[pods.Pod]) -> Iterator[action.Action]:
        away: list[int] = []
        files: list[str] = []
        for pod in pods:
            home = self.there.homes.get(pod.group or "", {})
            files.extend(self.there.threads.get(pod.group or "", ()))
            for group, threads in home.items():
                control = _control(group)
                if control == name:
                    continue
                if control in self.kept or group == "":
                    away.extend(threads)
                else:
                    message = f"{len(threads)} threads stay in {group}, a group of another program"
                    self.left.append((pod.key, message))
        if not away and not name:
            return
        sources = ["", *sorted(self.kept - {name})]
        yield action.MoveTasks(
            target=self.there.file(name, "tasks"),
            pids=tuple(sorted(away)),
            threads_of=tuple(files),
            taken_from=tuple(
                self.there.file(source, "tasks") for source in sources if source != name
            ),
            policy=_STEM,
            reason=f"{len(pods)} workloads belong to {name or 'no class'}",
        )

    def _monitors(self, homes: Mapping[str, Sequence[pods.Pod]]) -> Iterator[action.Action]:
        """Monitoring groups of pods, BE first, as long as there are RMIDs."""
        monitoring = self.there.hardware.monitoring
        assert monitoring is not None  # noqa: S101 -- asked before
        used = sum(1 + len(group.monitors) for group in self.there.groups.values())
        ours = sum(
            monitor.startswith("koordlet-")
            for group in self.there.groups.values()
            for monitor in group.monitors
        )
        # Every control group needs one too, and a freed RMID is back only when its lines are gone.
        room = monitoring.num_rmids - self.there.hardware.most_groups - (used - ours)
        room = min(room, self.most_monitors)
        wanted = [(name, pod) for name in ("BE", "LS", "LSR") for pod in homes.get(name, ())]
        for name, pod in wanted[: max(0, room)]:
            path = f"{name}/mon_groups/koordlet-{pod.uid.replace('/', '_')}"
            yield action.MakeDir(
                target=self.there.file(path, ""), policy=_STEM, reason=f"monitors {pod.key}"
            )
            here = self.there.groups.get(name)
            if here is not None and path.rpartition("/")[2] in here.monitors:
                # Only from its own control group: the kernel refuses any other (EINVAL).
                yield action.MoveTasks(
                    target=self.there.file(path, "tasks"),
                    pids=self.there.homes.get(pod.group or "", {}).get(name, ()),
                    threads_of=self.there.threads.get(pod.group or "", ()),
                    taken_from=(self.there.file(name, "tasks"),),
                    policy=_STEM,
                    reason=f"monitors {pod.key}",
                )


def _control(group: str) -> str:
    """The control group of a monitoring group; one of the root's is foreign, so it is itself."""
    head, inside, _ = group.partition("/mon_groups/")
    return head if inside else group
