"""Upper bounds: ``policies.<stem>.limits`` are applied last, and nothing exceeds them.

Covers: cutting the effective values down to the limits of their policy.
Does not cover: what a policy computes by itself from annotations and counters: it asks the same
limits again (``cut_cpus``).
"""

from __future__ import annotations

from koordlet.config import places, schema
from koordlet.model import cpuset, quantity
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Cut:
    """One value that was larger than its limit."""

    loc: places.Loc
    limit: places.Loc
    was: object
    now: object

    def __str__(self) -> str:
        what, by = places.dotted(self.loc), places.dotted(self.limit)
        return f"{what}: {self.was} exceeds {by} and is reduced to {self.now or 'nothing'}"


def apply(config: schema.Config) -> tuple[schema.Config, tuple[Cut, ...]]:
    """The configuration within its limits, and what was cut."""
    section = config.policies.reserved_cpus
    limit = section.limits.max_cpus
    if limit is None:
        return config, ()
    cuts: list[Cut] = []
    stem: places.Loc = ("policies", "reserved_cpus")
    bound: places.Loc = (*stem, "limits", "maxCpus")
    if section.cpus is not None:
        cut = cut_cpus(cpuset.CPUSet.parse(section.cpus), limit)
        if len(cut) < len(cpuset.CPUSet.parse(section.cpus)):
            cuts.append(Cut((*stem, "cpus"), bound, section.cpus, str(cut) or None))
    if section.quantity is not None and quantity.units(section.quantity) > limit:
        cuts.append(Cut((*stem, "quantity"), bound, section.quantity, str(limit)))
    if not cuts:
        return config, ()
    update = {str(cut.loc[-1]): cut.now for cut in cuts}
    limited = section.model_copy(update=update)
    policies = config.policies.model_copy(update={"reserved_cpus": limited})
    return config.model_copy(update={"policies": policies}), tuple(cuts)


def cut_cpus(cpus: cpuset.CPUSet, limit: int | None) -> cpuset.CPUSet:
    """Reduce a set to ``limit`` CPUs, keeping the lowest numbers."""
    if limit is None or len(cpus) <= limit:
        return cpus
    return cpuset.CPUSet.of(cpu for _, cpu in zip(range(limit), cpus, strict=False))
