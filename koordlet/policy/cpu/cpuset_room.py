"""CPUs that the parents will leave a cgroup, once the current plan is applied. Pure.

Covers: groups whose set was decided already, such as go back, such as nobody moves.
Does not cover: what a group gets of that (``cpuset_files``, ``policy.best_effort.groups``).

What a group above *has* is no answer while it moves itself: its set of before would be handed down
for one tick, to exclusive CPUs as to limits of best-effort work.
"""

from __future__ import annotations

import types
from collections.abc import Mapping

from koordlet.model import cgroup, cpuset, snapshot

_NONE: Mapping[str, cpuset.CPUSet] = types.MappingProxyType({})


def of(
    now: snapshot.Snapshot, path: str, decided: Mapping[str, cpuset.CPUSet] = _NONE
) -> cpuset.CPUSet:
    """The CPUs that ``path`` can have; ``decided`` counts before what the snapshot says."""
    own = now.topology.online
    for above in cgroup.ancestors(path):
        if above in decided:
            return decided[above] & own or decided[above]
        if above in now.sets:
            # An empty one lives on the set above it.
            own = own & now.sets[above] or own
        elif not _moves(now, above, decided):
            limit = _observed(now, above)
            if limit is not None:
                return limit & own or limit
        else:
            seen = now.groups.get(above)
            asked = None if seen is None else seen.cpus()
            own = own if asked is None else own & asked or own
    return own


def _moves(now: snapshot.Snapshot, path: str, decided: Mapping[str, cpuset.CPUSet]) -> bool:
    """Whether a cgroup's effective CPUs will change with this plan."""
    return any(above in decided or above in now.sets for above in cgroup.ancestors(path))


def _observed(now: snapshot.Snapshot, path: str) -> cpuset.CPUSet | None:
    seen = now.groups.get(path)
    if seen is None:
        return None
    # v1 compares with the configured set, v2 intersects the effective ones.
    return seen.effective() if now.layout.unified("cpuset") else seen.cpus() or seen.effective()
