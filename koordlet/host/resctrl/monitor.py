"""Reads what groups used: cache occupancy and memory traffic, by group and domain, with rates.

Covers: ``mon_data`` of control and monitoring groups, rates between two looks.
Does not cover: what is too much (``policy.resctrl.pressure``), showing it (``report``).

Rules:
1. A counter may read ``Unavailable`` or ``Unassigned`` (it has no hardware counter, or the RMID has
   not settled) or ``Error``: that is no number, and it breaks the rate across it.
2. A counter that goes backwards was started anew: no rate is negative, and none is made up.
3. A group made again under the same name is another one: the inode tells.
4. Linux 7.0 counts energy and instructions of whole packages, too, in ``mon_PERF_PKG_00``: those
   are not domains of a cache, and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.host.fs import root
from koordlet.model import resctrl

_CACHE, _PART = "mon_L3_", "mon_sub_"
_OCCUPANCY, _TOTAL, _LOCAL = "llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"


class Monitor:
    """Keeps the readings of one look before, for rates."""

    def __init__(self, host: root.HostRoot) -> None:
        self.host = host
        self._before: dict[tuple[str, int, str], tuple[float, int]] = {}

    def read(self, now: resctrl.Resctrl, at: float) -> tuple[resctrl.Usage, ...]:
        """Everything that is counted, in the order of groups and domains."""
        if now.hardware.monitoring is None:
            return ()
        seen: dict[tuple[str, int, str], tuple[float, int]] = {}
        usages: list[resctrl.Usage] = []
        for group in now.groups.values():
            for name in ("", *(f"mon_groups/{monitor}" for monitor in group.monitors)):
                full = "/".join(part for part in (group.name, name) if part)
                place = self.host.at(now.file(full, "mon_data"))
                usages.extend(self._group(full, group.inode, place, at, seen))
        self._before = seen
        return tuple(usages)

    def _group(
        self,
        name: str,
        inode: int,
        place: root.HostPath,
        at: float,
        seen: dict[tuple[str, int, str], tuple[float, int]],
    ) -> Iterator[resctrl.Usage]:
        for domain, where in self._domains(place):
            values = {
                file: self._number(self.host.below(where, file))
                for file in (_OCCUPANCY, _TOTAL, _LOCAL)
            }
            total, rate, key = values[_TOTAL], None, (name, inode, domain)
            if total is not None:
                seen[key] = (at, total)
                rate = _rate(self._before.get(key), seen[key])
            yield resctrl.Usage(
                group=name,
                domain=domain,
                llc_bytes=values[_OCCUPANCY],
                total_bytes=total,
                local_bytes=values[_LOCAL],
                total_rate=rate,
            )

    def _domains(self, place: root.HostPath) -> Iterator[tuple[str, root.HostPath]]:
        """``mon_L3_00`` and, where NUMA nodes share a cache (SNC), ``mon_sub_L3_01`` in it."""
        for name in self._names(place, _CACHE):
            where = self.host.below(place, name)
            number = _id(name)
            inner = self._names(where, _PART)
            for leaf in inner:
                yield f"{number}/{_id(leaf)}", self.host.below(where, leaf)
            if not inner:
                yield number, where

    def _names(self, place: root.HostPath, prefix: str) -> list[str]:
        try:
            return [name for name in self.host.list(place) if name.startswith(prefix)]
        except OSError:
            return []  # the group vanished, or this kind of machine counts nothing

    def _number(self, path: root.HostPath) -> int | None:
        try:
            text = self.host.text(path).strip()
        except OSError:
            return None
        return int(text) if text.isdecimal() else None


def _id(name: str) -> str:
    """``mon_L3_08`` is cache 8: the number is padded."""
    return name.rpartition("_")[2].lstrip("0") or "0"


def _rate(before: tuple[float, int] | None, now: tuple[float, int]) -> float | None:
    if before is None or now[0] <= before[0] or now[1] < before[1]:
        return None
    return (now[1] - before[1]) / (now[0] - before[0])
