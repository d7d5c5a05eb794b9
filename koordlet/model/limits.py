"""Limits in Kubernetes' terms, as files and texts of this machine.

Covers: from a value in the words of Kubernetes (shares, CPU time, bytes, device limits) to texts
for cgroup v1 or v2. Does not cover: the files themselves (``model.knob``), when to write.

Rules:
1. A file that this machine lacks gives nothing: the caller asks ``Layout.why_not`` for the reason.
2. On v1 the period of a quota is never changed: two files cannot change together, and in between
   the group would have another limit. The quota is scaled to the period that is there.
3. Shares become a weight by the line that the kubelet uses for its own groups. Newer runtimes use
   a curve for containers; a weight that was read is never computed back and forth.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import cgroup, forms, knob
from koordlet.model.knob_row import Knob
from koordlet.model.record import dataclass

_SHARES = (2, 262_144)
_WEIGHTS = (1, 10_000)
#: What the kernel starts with, and what the kubelet and the runtimes use unless told otherwise.
PERIOD_USEC = 100_000
_DEVICE_FIELDS = {
    "rbps": knob.READ_BPS,
    "wbps": knob.WRITE_BPS,
    "riops": knob.READ_IOPS,
    "wiops": knob.WRITE_IOPS,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One file and its wanted text."""

    row: Knob
    path: str
    text: str


def weight_of(shares: int) -> int:
    """The v2 weight of v1 shares, both cut to their ranges."""
    inside = min(max(shares, _SHARES[0]), _SHARES[1])
    return _WEIGHTS[0] + (inside - _SHARES[0]) * (_WEIGHTS[1] - 1) // (_SHARES[1] - _SHARES[0])


def cpu_shares(layout: cgroup.Layout, group: str, shares: int) -> tuple[Setting, ...]:
    """CPU shares of a cgroup: its part of CPU time under contention."""
    inside = min(max(shares, _SHARES[0]), _SHARES[1])
    return _one(layout, group, knob.CPU_SHARES, str(inside)) or _one(
        layout, group, knob.CPU_WEIGHT, str(weight_of(shares))
    )


def cpu_quota(
    layout: cgroup.Layout, group: str, milli: int | None, *, period_usec: int = PERIOD_USEC
) -> tuple[Setting, ...]:
    """CPU time in thousandths of a CPU; ``None`` is no limit. ``period_usec`` is what is there."""
    usec = None if milli is None else milli * period_usec // 1000
    return cpu_time(layout, group, usec, period_usec=period_usec)


def cpu_time(
    layout: cgroup.Layout, group: str, usec: int | None, *, period_usec: int = PERIOD_USEC
) -> tuple[Setting, ...]:
    """CPU time in microseconds of each period, cut to the kernel's range; ``None`` is no limit."""
    usec = None if usec is None else min(max(forms.QUOTAS[0], usec), forms.QUOTAS[-1])
    on_v1 = "-1" if usec is None else str(usec)
    on_v2 = forms.Bandwidth().text(forms.Quota(usec, period_usec))
    return _one(layout, group, knob.CPU_CFS_QUOTA, on_v1) or _one(
        layout, group, knob.CPU_MAX, on_v2
    )


def cpu_period(seen: cgroup.Group | None) -> int:
    """The period of a group's quota as it was observed: v1 has it in a file of its own."""
    text = "" if seen is None else seen.values.get(knob.CPU_CFS_PERIOD.name, "")
    return int(text) if text.isdecimal() and int(text) in forms.PERIODS else PERIOD_USEC


def cpu_burst(layout: cgroup.Layout, group: str, usec: int) -> tuple[Setting, ...]:
    """CPU time beyond the quota that may be saved up; at most the quota."""
    return _one(layout, group, knob.CPU_CFS_BURST, str(usec)) or _one(
        layout, group, knob.CPU_BURST, str(usec)
    )


def cpu_idle(layout: cgroup.Layout, group: str, *, idle: bool) -> tuple[Setting, ...]:
    """``cpu.idle`` of a cgroup; only for cgroups that koordlet may set it on."""
    return _one(layout, group, knob.CPU_IDLE, str(int(idle)))


def memory_max(layout: cgroup.Layout, group: str, size: int | None) -> tuple[Setting, ...]:
    """The hard limit of memory; ``None`` is none."""
    limit = memory(layout, group, knob.MEMORY_LIMIT, size)
    return limit or memory(layout, group, knob.MEMORY_MAX, size)


def memory(layout: cgroup.Layout, group: str, row: Knob, size: int | None) -> tuple[Setting, ...]:
    """A limit of memory in bytes, such as ``MEMORY_MIN``, ``MEMORY_LOW``, ``MEMORY_HIGH``."""
    form = row.form
    if not isinstance(form, forms.Number):
        raise TypeError(f"{row.name} holds no number of bytes")
    # A limit follows what is in use: a file that says more than memory can be stops no policy.
    inside = None if size is None else min(size, form.high)
    return _one(layout, group, row, form.text(inside))


def device(
    layout: cgroup.Layout, group: str, number: str, fields: Mapping[str, int | None]
) -> tuple[Setting, ...]:
    """Limits of a block device: ``rbps``, ``wbps``, ``riops``, ``wiops``; ``None`` is no limit."""
    path = layout.file(knob.IO_MAX, group)
    if path is not None:
        line = forms.Keyed("max").text(number, dict(fields))
        return (Setting(knob.IO_MAX, path, line),)
    settings: list[Setting] = []
    for name, value in fields.items():
        line = forms.Keyed("0").text(number, {"": value})
        settings.extend(_one(layout, group, _DEVICE_FIELDS[name], line))
    return tuple(settings)


def _one(layout: cgroup.Layout, group: str, row: Knob, text: str) -> tuple[Setting, ...]:
    path = layout.file(row, group)
    return () if path is None else (Setting(row, path, text),)
