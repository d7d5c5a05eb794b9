"""The rows of block devices, of processes and of pressure.

Covers: ``io.*``, ``blkio.*``, ``pids.*``. Does not cover: the table (``model.knob``).

io.max is one file with four fields on v2 and four files on v1; a line names one device.
"""

from __future__ import annotations

from koordlet.model import forms
from koordlet.model.knob_row import Access, Knob, Turn

_DEVICE = "no such device: ENODEV; no line that it understands: EINVAL"
#: Before weights of single devices, which the kernel refuses until one of these set the device up
#: (block/blk-iocost.c, blk_iocost_init).
_COST = Turn(rises=55, falls=55)
#: A limit of 0 takes a device's line away on v1.
_THROTTLE = forms.Keyed("0", "`MAJOR:MINOR NUMBER`")


def _throttle(what: str, unit: str) -> Knob:
    name = f"blkio.throttle.{what}_device"
    return Knob(
        name=name,
        controller="blkio",
        v1=name,
        v2=None,
        form=_THROTTLE,
        turn=Turn(rises=60, falls=60),
        unit=unit,
        twin="io.max",
        answers=f"{_DEVICE}; only the lower 32 bits count" if unit == "1/s" else _DEVICE,
    )


READ_BPS = _throttle("read_bps", "bytes/s")
WRITE_BPS = _throttle("write_bps", "bytes/s")
READ_IOPS = _throttle("read_iops", "1/s")
WRITE_IOPS = _throttle("write_iops", "1/s")
IO_MAX = Knob(
    name="io.max",
    controller="io",
    v1=None,
    v2="io.max",
    form=forms.Keyed("max", "`MAJOR:MINOR rbps=… wbps=… riops=… wiops=…`, numbers or `max`"),
    turn=Turn(rises=60, falls=60),
    unit="bytes/s, 1/s",
    twin="blkio.throttle.*",
    answers=f"0: ERANGE; 1, and a number with a unit: EINVAL or misread; {_DEVICE}",
)
BLKIO_WEIGHT = Knob(
    name="blkio.bfq.weight",
    controller="blkio",
    v1="blkio.bfq.weight",
    v2=None,
    form=forms.Number(low=1, high=1_000),
    turn=Turn(rises=60, falls=60),
    twin="io.weight",
    since="5.0",
    answers="outside of the range: ERANGE; there only with the BFQ scheduler",
)
IO_WEIGHT = Knob(
    name="io.weight",
    controller="io",
    v1=None,
    v2="io.weight",
    form=forms.Keyed("default", "`default NUMBER` or `MAJOR:MINOR NUMBER`, 1…10000"),
    turn=Turn(rises=60, falls=60),
    twin="blkio.bfq.weight",
    since="5.4",
    answers="outside of the range: EINVAL; one device before io.cost.qos has named it: ENOTSUP; in"
    " effect with io.cost only",
)
IO_COST_QOS = Knob(
    name="io.cost.qos",
    controller="",
    v1=None,
    v2="io.cost.qos",
    form=forms.Keyed(
        "0",
        "`MAJOR:MINOR enable=… ctrl=user rpct=… rlat=… wpct=… wlat=…`",
        reset="enable=0 ctrl=auto",
    ),
    turn=_COST,
    unit="%, µs",
    answers="on the root group only; " + _DEVICE,
)
IO_COST_MODEL = Knob(
    name="io.cost.model",
    controller="",
    v1=None,
    v2="io.cost.model",
    form=forms.Keyed("0", "`MAJOR:MINOR ctrl=user model=linear rbps=… …`", reset="ctrl=auto"),
    turn=_COST,
    unit="bytes/s, 1/s",
    answers="on the root group only; " + _DEVICE,
)
BLKIO_COST_WEIGHT = Knob(
    name="blkio.cost.weight",
    controller="blkio",
    v1="blkio.cost.weight",
    v2=None,
    form=forms.Keyed("100", "`MAJOR:MINOR NUMBER`, 1…100"),
    turn=Turn(rises=60, falls=60),
    twin="io.weight",
    since="Alibaba Cloud Linux",
    answers="on other kernels: ENOENT",
)
IO_LATENCY = Knob(
    name="io.latency",
    controller="io",
    v1=None,
    v2="io.latency",
    form=forms.Keyed("0", "`MAJOR:MINOR target=MICROSECONDS`"),
    turn=Turn(rises=60, falls=60),
    unit="µs",
    since="4.19",
    answers=_DEVICE,
)
IO_PRESSURE = Knob(
    name="io.pressure", controller="", v1=None, v2="io.pressure", access=Access.READ, since="4.20"
)
MEMORY_PRESSURE = Knob(
    name="memory.pressure",
    controller="",
    v1=None,
    v2="memory.pressure",
    access=Access.READ,
    since="4.20",
)
PIDS_CURRENT = Knob(
    name="pids.current",
    controller="pids",
    v1="pids.current",
    v2="pids.current",
    access=Access.READ,
)
PIDS_MAX = Knob(
    name="pids.max",
    controller="pids",
    v1="pids.max",
    v2="pids.max",
    form=forms.Number(low=0, high=4_194_304, unlimited="max"),
    turn=Turn(rises=60, falls=60),
    usage="pids.current",
    answers="negative, too large, no number: EINVAL; below the use it only stops new ones",
)
