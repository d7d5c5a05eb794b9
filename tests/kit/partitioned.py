"""A machine of which another program's cpuset partition has a part, and what everybody used.

Covers: moments whose root lacks CPUs, histories with use inside and outside.
"""

from __future__ import annotations

from dataclasses import replace

from koordlet.history import series
from koordlet.model import ledger, meter, snapshot
from tests.kit import colocation, counting, moments
from tests.kit.colocation import KubeQos, Qos

#: Eight CPUs in two NUMA nodes, of which another program's partition has the last four.
EIGHT = moments.machine(2, 4, threads=1)
LS = colocation.kube("ls", KubeQos.BURSTABLE, Qos.LS)
BE = colocation.kube("be", KubeQos.BEST_EFFORT, Qos.BE)


def moment(root: str, held: str | None = None) -> snapshot.Snapshot:
    """The root of the tree has some of the CPUs."""
    claims = None if held is None else {ledger.Owner.RESERVED: held}
    now = colocation.moment(EIGHT, [LS, BE], layout=colocation.V2, claims=claims)
    return replace(now, groups={**now.groups, "": moments.group("", root, unified=True)})


def past(cpus: dict[str, float], seconds: int = 1) -> series.History:
    """The service used 1.5 cores, best-effort work 0.5, the whole node all and half a core more."""
    use = {"": 2.5 + sum(cpus.values())}
    groups = {str(LS.group): 1.5, str(BE.group): 0.5, colocation.TIER: 0.5}
    made = series.History()
    for second in range(seconds + 1):
        made.take(
            {
                kind: counting.reading(
                    100.0 - seconds + second,
                    {meter.CPU: [50.0 + second * each for each in several.values()]},
                    names=tuple(several),
                )
                for kind, several in (("node", use), ("groups", groups), ("cpus", cpus))
                if several
            }
        )
    return made


PARTITION = {"4": 1.0, "5": 1.0, "6": 0.5, "7": 0.25}
