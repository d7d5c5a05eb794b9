"""The rows of memory.

Covers: ``memory.*``. Does not cover: the table (``model.knob``).
"""

from __future__ import annotations

from koordlet.model import forms
from koordlet.model.knob_row import FLAG, Access, Knob, Turn

#: Written and shown in bytes; the kernel rounds down to pages.
_BYTES = forms.Number(low=0, high=2**63 - 1, unlimited="max", unit=4096)
#: What v1 shows for no limit is the largest multiple of a page.
_V1_BYTES = forms.Number(
    low=0, high=2**63 - 1, unlimited="-1", also_unlimited=0x7FFF_FFFF_FFFF_F000, unit=4096
)
_COUNT = forms.Number(low=0, high=2**63 - 1)
MEMORY_USAGE = Knob(
    name="memory.current",
    controller="memory",
    v1="memory.usage_in_bytes",
    v2="memory.current",
    form=_COUNT,
    access=Access.READ,
    unit="bytes",
)
MEMSW_USAGE = Knob(
    name="memory.memsw.usage_in_bytes",
    controller="memory",
    v1="memory.memsw.usage_in_bytes",
    v2=None,
    form=_COUNT,
    access=Access.READ,
    unit="bytes",
)
MEMORY_STAT = Knob(
    name="memory.stat",
    controller="memory",
    v1="memory.stat",
    v2="memory.stat",
    access=Access.READ,
    unit="bytes",
)
_NEGATIVE = "negative, fractions: EINVAL; an empty line is 0; rounded down to pages"
MEMORY_MIN = Knob(
    name="memory.min",
    controller="memory",
    v1=None,
    v2="memory.min",
    form=_BYTES,
    turn=Turn(rises=50, falls=50),
    unit="bytes",
    answers=_NEGATIVE,
)
MEMORY_LOW = Knob(
    name="memory.low",
    controller="memory",
    v1=None,
    v2="memory.low",
    form=_BYTES,
    turn=Turn(rises=51, falls=51),
    unit="bytes",
    answers=_NEGATIVE,
)
MEMORY_HIGH = Knob(
    name="memory.high",
    controller="memory",
    v1=None,
    v2="memory.high",
    form=_BYTES,
    turn=Turn(rises=54, falls=54),
    unit="bytes",
    usage="memory.current",
    least=True,
    may_block=True,
    answers=f"{_NEGATIVE}; below the use it reclaims until it is not, or gives up",
)
MEMORY_MAX = Knob(
    name="memory.max",
    controller="memory",
    v1=None,
    v2="memory.max",
    form=_BYTES,
    turn=Turn(rises=53, falls=55),
    unit="bytes",
    twin="memory.limit_in_bytes",
    usage="memory.current",
    least=True,
    may_block=True,
    answers=f"{_NEGATIVE}; below the use it kills",
)
MEMORY_LIMIT = Knob(
    name="memory.limit_in_bytes",
    controller="memory",
    v1="memory.limit_in_bytes",
    v2=None,
    form=_V1_BYTES,
    turn=Turn(rises=53, falls=55),
    unit="bytes",
    twin="memory.max",
    usage="memory.current",
    least=True,
    may_block=True,
    answers="`max`, above memory and swap: EINVAL; below what cannot be reclaimed: EBUSY",
)
# Memory and swap together are never less than memory alone.
MEMSW_LIMIT = Knob(
    name="memory.memsw.limit_in_bytes",
    controller="memory",
    v1="memory.memsw.limit_in_bytes",
    v2=None,
    form=_V1_BYTES,
    turn=Turn(rises=52, falls=56),
    unit="bytes",
    usage="memory.memsw.usage_in_bytes",
    may_block=True,
    answers="below memory.limit_in_bytes: EINVAL",
)
MEMORY_RECLAIM = Knob(
    name="memory.reclaim",
    controller="memory",
    v1=None,
    v2="memory.reclaim",
    form=forms.Number(low=0, high=2**63 - 1),
    access=Access.TRIGGER,
    unit="bytes",
    may_block=True,
    since="5.19",
    answers="less could be reclaimed: EAGAIN; reading it: EINVAL",
)
OOM_GROUP = Knob(
    name="memory.oom.group",
    controller="memory",
    v1=None,
    v2="memory.oom.group",
    form=FLAG,
    since="4.19",
    answers="anything else: EINVAL",
)
_ANOLIS = "Alibaba Cloud Linux"


def _anolis(name: str, low: int, high: int) -> Knob:
    """A file that only one vendor's kernel has, on both versions."""
    return Knob(
        name=name,
        controller="memory",
        v1=name,
        v2=name,
        form=forms.Number(low=low, high=high),
        since=_ANOLIS,
        answers="on other kernels: ENOENT",
    )


WMARK_RATIO = _anolis("memory.wmark_ratio", 0, 100)
WMARK_SCALE = _anolis("memory.wmark_scale_factor", 1, 1000)
WMARK_MIN_ADJ = _anolis("memory.wmark_min_adj", -25, 50)
MEMORY_PRIORITY = _anolis("memory.priority", 0, 12)
USE_PRIORITY_OOM = _anolis("memory.use_priority_oom", 0, 1)
