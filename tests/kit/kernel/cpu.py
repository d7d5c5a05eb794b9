"""The cpu controller: weights, bandwidth, burst, idle; its v1 and v2 files.

Covers: ``cpu.shares``/``cfs_*`` of v1, ``cpu.max``/``weight`` of v2, ``cpu.idle``.
Does not cover: uclamp, real-time bandwidth (neither is built into Debian's kernel).

Kernel facts: ``kernel/sched/core.c`` (``tg_set_cfs_bandwidth``, ``__cfs_schedulable``,
``sched_group_set_idle``), ``kernel/sched/fair.c`` (``__sched_group_set_shares``); 6.1. Where 6.12
or 7.3 answered otherwise, the first of them that did is named.
"""

from __future__ import annotations

import abc
import dataclasses
import errno
import re
from collections.abc import Iterable

from tests.kit.kernel import parsing
from tests.kit.kernel.group import Group, Knob, On, Stateful
from tests.kit.kernel.tree import refused

_MIN_SHARES, _MAX_SHARES = 2, 1 << 18
_NICE_0 = 1024
_IDLE = 3
_MIN_US, _MAX_PERIOD_US = 1000, 1_000_000
#: ``max_bw_runtime_us``: beyond it the fixed-point ratio would overflow.
_MAX_QUOTA_US = 17_592_186_044_415
#: An idle group's weight is shown as the least there is, not as 0.
_LEAST_IS_ONE = (6, 12)
#: Microseconds that are too many are no longer cut to 64 bits of nanoseconds; all ones is no limit.
_NOT_WRAPPED = (7, 3)
#: ``sched_prio_to_weight``, nice -20 to 19.
_NICE = (
    *(88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277),
    *(1024, 820, 655, 526, 423, 335, 272, 215, 172, 137),
    *(110, 87, 70, 56, 45, 36, 29, 23, 18, 15),
)


@dataclasses.dataclass
class Share:
    """The settings of one group."""

    shares: int = _NICE_0
    idle: bool = False
    #: Microseconds; None is no limit.
    quota: int | None = None
    period: int = 100_000
    burst: int = 0

    def ratio(self) -> int | None:
        """CPUs as a fixed-point number (``to_ratio``); None is no limit."""
        return None if self.quota is None else (self.quota << 20) // self.period


class Cpu(Stateful[Share], abc.ABC):
    """What both versions share."""

    name = "cpu"
    threaded = True

    def fresh(self, group: Group) -> Share:
        del group
        return Share()

    def set_shares(self, group: Group, shares: int) -> None:
        """Clamped, never refused for its size; EINVAL on the root and on an idle group."""
        state = self.of[group]
        if state.idle or group.parent is None:
            raise refused(errno.EINVAL)
        state.shares = min(max(shares, _MIN_SHARES), _MAX_SHARES)

    def set_idle(self, group: Group, text: str) -> None:
        """Idle groups weigh 3; leaving idle gives the default back, not what was before."""
        value = parsing.signed(text)
        state = self.of[group]
        if group.parent is None or value not in (0, 1):
            raise refused(errno.EINVAL)
        if value != state.idle:
            state.idle = bool(value)
            state.shares = _IDLE if value else _NICE_0

    def set_bandwidth(self, group: Group, quota: int | None, period: int, burst: int) -> None:
        """All three at once, or EINVAL and nothing (``tg_set_cfs_bandwidth``)."""
        if group.parent is None or not _MIN_US <= period <= _MAX_PERIOD_US:
            raise refused(errno.EINVAL)
        if quota is not None and not (_MIN_US <= quota <= _MAX_QUOTA_US):
            raise refused(errno.EINVAL)
        if quota is not None and (burst > quota or burst + quota > _MAX_QUOTA_US):
            raise refused(errno.EINVAL)
        self.vet_ratio(group, Share(quota=quota, period=period))
        state = self.of[group]
        state.quota, state.period, state.burst = quota, period, burst

    def vet_ratio(self, group: Group, wanted: Share) -> None:
        """v1 has a rule between parent and child; v2 has none."""

    def throttling(self) -> str:
        """The bandwidth part of ``cpu.stat``; the stand-in never throttles."""
        return "nr_periods 0\nnr_throttled 0\n"


class Cpu1(Cpu):
    """``cpu.shares`` and ``cpu.cfs_*``."""

    def knobs(self) -> Iterable[Knob]:
        of = self.of
        return (
            Knob("cpu.shares", lambda g: f"{of[g].shares}\n", self._write_shares),
            Knob("cpu.idle", lambda g: f"{int(of[g].idle)}\n", self.set_idle),
            Knob("cpu.cfs_quota_us", self._quota, self._write_quota),
            Knob("cpu.cfs_period_us", lambda g: f"{of[g].period}\n", self._write_period),
            Knob("cpu.cfs_burst_us", lambda g: f"{of[g].burst}\n", self._write_burst),
            Knob("cpu.stat", self._stat),
        )

    def _stat(self, group: Group) -> str:
        del group
        return self.throttling() + "throttled_time 0\nnr_bursts 0\nburst_time 0\n"

    def _write_shares(self, group: Group, text: str) -> None:
        self.set_shares(group, parsing.unsigned(text))

    def _quota(self, group: Group) -> str:
        quota = self.of[group].quota
        return f"{-1 if quota is None else quota}\n"

    def _write_quota(self, group: Group, text: str) -> None:
        value, state = parsing.signed(text), self.of[group]
        self.set_bandwidth(group, None if value < 0 else value, state.period, state.burst)

    def _write_period(self, group: Group, text: str) -> None:
        value, state = parsing.unsigned(text), self.of[group]
        self.set_bandwidth(group, state.quota, value, state.burst)

    def _write_burst(self, group: Group, text: str) -> None:
        value, state = parsing.unsigned(text), self.of[group]
        self.set_bandwidth(group, state.quota, state.period, value)

    def vet_ratio(self, group: Group, wanted: Share) -> None:
        """No group may have more CPUs than its nearest limited ancestor: EINVAL both ways.

        ``tg_cfs_schedulable_down`` walks the whole hierarchy with the wish in place.
        """
        limits: dict[Group, int | None] = {group.hierarchy.root: None}
        for descendant in group.hierarchy.root.walk():
            if descendant.parent is None:
                continue
            above = limits[descendant.parent]
            own = (wanted if descendant is group else self.of[descendant]).ratio()
            if own is not None and above is not None and own > above:
                raise refused(errno.EINVAL)
            limits[descendant] = above if own is None else own


class Cpu2(Cpu):
    """``cpu.weight`` and ``cpu.max``."""

    def __init__(self, kernel: tuple[int, int] = (6, 1)) -> None:
        super().__init__()
        self._kernel = kernel

    def knobs(self) -> Iterable[Knob]:
        of = self.of
        return (
            Knob("cpu.weight", self._weight, self._write_weight, On.CHILDREN),
            Knob("cpu.weight.nice", self._nice, self._write_nice, On.CHILDREN),
            Knob("cpu.idle", lambda g: f"{int(of[g].idle)}\n", self.set_idle, On.CHILDREN),
            Knob("cpu.max", self._max, self._write_max, On.CHILDREN),
            Knob(
                "cpu.max.burst",
                lambda g: f"{of[g].burst}\n",
                self._write_burst,
                On.CHILDREN,
            ),
        )

    def _weight(self, group: Group) -> str:
        weight = _closest(self.of[group].shares * 100, 1024)
        return f"{max(weight, int(self._kernel >= _LEAST_IS_ONE))}\n"

    def _write_weight(self, group: Group, text: str) -> None:
        weight = parsing.unsigned(text)
        if not 1 <= weight <= 10_000:
            raise refused(errno.ERANGE)
        self.set_shares(group, _closest(weight * 1024, 100))

    def _nice(self, group: Group) -> str:
        """The nice value whose weight is nearest (the first one of equals)."""
        shares = self.of[group].shares
        return f"{min(range(40), key=lambda index: abs(_NICE[index] - shares)) - 20}\n"

    def _write_nice(self, group: Group, text: str) -> None:
        nice = parsing.signed(text)
        if not -20 <= nice <= 19:
            raise refused(errno.ERANGE)
        self.set_shares(group, _NICE[nice + 20])

    def _max(self, group: Group) -> str:
        state = self.of[group]
        return f"{'max' if state.quota is None else state.quota} {state.period}\n"

    def _write_max(self, group: Group, text: str) -> None:
        """``cpu_period_quota_parse``: one word keeps the period, what follows two is ignored."""
        state = self.of[group]
        words = re.match(r"[ \t\n\v\f\r]*(\S{1,20})(.*)", text, re.DOTALL)
        if words is None:
            raise refused(errno.EINVAL)
        period, quota = parsing.scanned(words[2]), parsing.scanned(words[1])
        if quota is None and words[1] != "max":
            raise refused(errno.EINVAL)
        if self._kernel < _NOT_WRAPPED:
            period, quota = _wrapped(period), _wrapped(quota)
        elif quota == parsing.U64:
            quota = None
        self.set_bandwidth(group, quota, state.period if period is None else period, state.burst)

    def _write_burst(self, group: Group, text: str) -> None:
        value, state = parsing.unsigned(text), self.of[group]
        self.set_bandwidth(group, state.quota, state.period, value)


class Cpuacct(Stateful[None]):
    """v1's accounting files; nothing in the stand-in uses CPU."""

    name = "cpuacct"

    def fresh(self, group: Group) -> None:
        del group

    def knobs(self) -> Iterable[Knob]:
        zero = "".join(
            f"cpuacct.{name} " for name in ("usage_percpu", "usage_percpu_sys", "usage_percpu_user")
        )
        single = ("cpuacct.usage", "cpuacct.usage_sys", "cpuacct.usage_user")
        return (
            Knob("cpuacct.stat", lambda group: "user 0\nsystem 0\n"),
            Knob("cpuacct.usage_all", lambda group: "cpu user system\n"),
            *(Knob(name, lambda group: "0\n") for name in (*single, *zero.split())),
        )


def _closest(value: int, divisor: int) -> int:
    """``DIV_ROUND_CLOSEST``."""
    return (value + divisor // 2) // divisor


def _wrapped(microseconds: int | None) -> int | None:
    """The kernel multiplies to nanoseconds in 64 bits, unchecked."""
    return None if microseconds is None else (microseconds * 1000 & parsing.U64) // 1000
