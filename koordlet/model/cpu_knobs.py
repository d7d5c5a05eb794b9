"""The rows of CPU time.

Covers: ``cpu.*`` and ``cpuacct.*``. Does not cover: the table (``model.knob``).
"""

from __future__ import annotations

from koordlet.model import forms
from koordlet.model.knob_row import FLAG, Access, Knob, Turn

_RANGE = "outside of the range: ERANGE; no number: EINVAL"
_INVALID = "anything else: EINVAL"

#: CPU time so far: nanoseconds on v1, the ``usage_usec`` line on v2.
CPU_USAGE = Knob(
    name="cpu.usage",
    controller="cpuacct",
    v1="cpuacct.usage",
    v2="cpu.stat",
    access=Access.READ,
    unit="ns, or lines in µs",
)
CPU_STAT = Knob(name="cpu.stat", controller="cpu", v1="cpu.stat", v2="cpu.stat", access=Access.READ)
CPU_SHARES = Knob(
    name="cpu.shares",
    controller="cpu",
    v1="cpu.shares",
    v2=None,
    form=forms.Number(low=2, high=262_144, clamps=True),
    twin="cpu.weight",
    answers="outside of the range: cut to it; while cpu.idle is 1: EINVAL",
)
CPU_WEIGHT = Knob(
    name="cpu.weight",
    controller="cpu",
    v1=None,
    v2="cpu.weight",
    # An idle group's reads 0 before 6.12, and the least after.
    form=forms.Number(low=1, high=10_000, also_low=0),
    twin="cpu.shares",
    answers=f"{_RANGE}; while cpu.idle is 1: EINVAL, and it reads 0",
)
# Burst is lowered before the quota and raised after it, because it may never be more. Quotas are
# raised from the top and lowered from the bottom, because v1 lets no child have more than the next
# limited group above it.
CPU_CFS_QUOTA = Knob(
    name="cpu.cfs_quota_us",
    controller="cpu",
    v1="cpu.cfs_quota_us",
    v2=None,
    form=forms.Number(low=1_000, high=17_592_186_044_415, unlimited="-1"),
    turn=Turn(rises=20, falls=30),
    unit="µs each period",
    twin="cpu.max",
    least=True,
    answers="less than 1 ms, less than the burst, more of a period than the next limited group"
    " above or less than one below: EINVAL",
)
CPU_CFS_PERIOD = Knob(
    name="cpu.cfs_period_us",
    controller="cpu",
    v1="cpu.cfs_period_us",
    v2=None,
    form=forms.Number(low=1_000, high=1_000_000),
    access=Access.READ,
    unit="µs",
    twin="cpu.max",
    answers="never written: quota and period cannot change together, so quotas keep to the period"
    " that is there",
)
CPU_MAX = Knob(
    name="cpu.max",
    controller="cpu",
    v1=None,
    v2="cpu.max",
    form=forms.Bandwidth(),
    turn=Turn(rises=20, falls=30),
    unit="µs each period, and the period",
    twin="cpu.cfs_quota_us",
    least=True,
    answers="less than 1 ms, less than the burst: EINVAL; groups above and below do not matter",
)
_BURST = forms.Number(low=0, high=17_592_186_044_415)
CPU_CFS_BURST = Knob(
    name="cpu.cfs_burst_us",
    controller="cpu",
    v1="cpu.cfs_burst_us",
    v2=None,
    form=_BURST,
    turn=Turn(rises=40, falls=10),
    unit="µs",
    twin="cpu.max.burst",
    since="5.14",
    answers="more than the quota: EINVAL",
)
CPU_BURST = Knob(
    name="cpu.max.burst",
    controller="cpu",
    v1=None,
    v2="cpu.max.burst",
    form=_BURST,
    turn=Turn(rises=40, falls=10),
    unit="µs",
    twin="cpu.cfs_burst_us",
    since="5.14",
    answers="more than the quota: EINVAL; without a quota it is kept, and a quota below fails",
)
#: Cleared before weights are written, set after them: a group that idles takes none.
CPU_IDLE = Knob(
    name="cpu.idle",
    controller="cpu",
    v1="cpu.idle",
    v2="cpu.idle",
    form=FLAG,
    turn=Turn(rises=90, falls=0),
    since="5.15",
    answers=f"{_INVALID}; clearing it sets the usual weight, not the one before",
)
CPU_BVT = Knob(
    name="cpu.bvt_warp_ns",
    controller="cpu",
    v1="cpu.bvt_warp_ns",
    v2="cpu.bvt_warp_ns",
    form=forms.Number(low=-1, high=2),
    since="Alibaba Cloud Linux",
    answers="on other kernels: ENOENT",
)
CPU_PRESSURE = Knob(
    name="cpu.pressure",
    controller="",
    v1=None,
    v2="cpu.pressure",
    access=Access.READ,
    since="4.20",
)
