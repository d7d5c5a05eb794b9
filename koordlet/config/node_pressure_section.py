"""The sections ``policies.node_pressure`` and ``policies.local_storage_evict``.

Covers: the kubelet's eviction keys under their own names, in a file or spelled as its flags are.
Does not cover: the grammar of thresholds (``model.thresholds``), the policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from koordlet.config import fieldtypes, places, sections
from koordlet.model import duration, errors, thresholds


def _map(separator: str) -> Callable[[object], object]:
    """A map of signals, also in the spelling of the kubelet's flags."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return thresholds.flag(value, separator)
        except ValueError as error:
            fieldtypes.refuse(str(error), "write it like memory.available" + separator + "…")

    return read


_TEXTS = WithJsonSchema(
    {
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "string"},
            {"type": "null"},
        ]
    }
)
_Limits = Annotated[Mapping[str, str] | None, BeforeValidator(_map("<")), _TEXTS]
_Values = Annotated[Mapping[str, str] | None, BeforeValidator(_map("=")), _TEXTS]


def _duration(value: object) -> object:
    if not isinstance(value, str):
        fieldtypes.refuse(f"expected a duration, found {places.show(value)}", "write it like 5m")
    try:
        seconds = duration.parse(value)
    except ValueError as error:
        fieldtypes.refuse(str(error))
    if seconds < 0:
        fieldtypes.refuse(f"a duration must not be negative: {value}")
    return value


_Percents = Annotated[Mapping[str, Annotated[int, Field(ge=1, le=100)]], fieldtypes.ABSENT_MAP]
_Duration = Annotated[str, BeforeValidator(_duration), WithJsonSchema({"type": "string"})]


class NodePressureLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    #: Highest number of concurrent evictions for each signal.
    in_flight: Annotated[int, Field(ge=1, le=100)] = 1
    #: Highest number of evictions started per minute, for all signals together.
    per_minute: Annotated[int, Field(ge=1, le=1000)] = 10


class NodePressure(sections.Section):
    """Evictions and conditions when memory, disk, inodes or processes run out."""

    mode: sections.PolicyModeField = "enforce"
    limits: NodePressureLimits
    #: Evict pods; null is true only on machines without a kubelet. Beside a kubelet, koordlet acts
    #: only on thresholds that it reaches before the kubelet.
    act: bool | None = None
    #: Hard thresholds by signal: koordlet evicts at once. Null uses the kubelet's defaults, an
    #: empty map none.
    eviction_hard: _Limits = None
    #: Soft thresholds by signal: koordlet evicts after the grace period.
    eviction_soft: _Limits = None
    #: Grace periods of the soft thresholds by signal, such as `90s`.
    eviction_soft_grace_period: _Values = None
    #: Minimum reclaim by signal: what must be available above the threshold before the signal is
    #: relieved.
    eviction_minimum_reclaim: _Values = None
    #: koordlet's own thresholds. For an average of memory pressure: the percent of stalled time at
    #: which koordlet evicts, such as `memory.full.avg10: 40%`. For `swap.available`: the least free
    #: swap, such as `10%`.
    eviction_own: fieldtypes.StringMap = Field(default_factory=dict)
    #: How long an `evictionOwn` threshold must be met before koordlet evicts.
    eviction_own_grace_period: _Duration = "10s"
    #: How long a pressure condition stays true after its threshold was last met.
    eviction_pressure_transition_period: _Duration = "5m0s"
    #: Longest termination grace period of pods evicted for a soft threshold, in seconds; less than
    #: 1 counts as 1.
    eviction_max_pod_grace_period: Annotated[int, Field(ge=-(2**31), le=86_400)] = 0
    #: Merge the kubelet's defaults into `evictionHard`.
    merge_default_eviction_settings: bool = False
    #: If it contains `pods`, the memory of all pods together is a signal too.
    enforce_node_allocatable: fieldtypes.Listed[str] = ("pods",)
    #: Enforce local-storage limits of pods before node thresholds.
    local_storage_capacity_isolation: bool = True
    #: Reclaim page cache before evicting, where that can suffice (cgroup v2, no swap); null is true
    #: only on machines without a kubelet.
    reclaim_page_cache: bool | None = None
    #: Seconds between two passes; null is 10 beside a kubelet, as the kubelet does, and every tick
    #: elsewhere. Crossing a threshold starts a pass at once.
    pass_seconds: Annotated[int | None, Field(ge=1, le=60)] = None
    #: A directory on the node's file system; null uses the kubelet's directory.
    nodefs: fieldtypes.Directory = None
    #: A directory on the image file system; null uses the container runtime's directory.
    imagefs: fieldtypes.Directory = None
    #: A directory on the file system of writable layers; null uses the image file system.
    containerfs: fieldtypes.Directory = None
    #: Cgroup whose memory counts as the node's memory; null uses the root cgroup.
    memory_cgroup: fieldtypes.CgroupPath = None
    #: Percent of stalled time at which a pressure condition becomes true, by average, such as
    #: `memory.full.avg10`.
    pressure_limits: _Percents = Field(default_factory=dict)
    #: Memory use of a workload, in percent of its limit, at which the condition
    #: `WorkloadMemoryTight` becomes true; null disables it.
    workload_memory_percent: Annotated[int | None, Field(ge=1, le=100)] = None
    #: Least free swap, such as `10%`; null sets no threshold.
    swap_available: str | None = None

    @model_validator(mode="after")
    def _thresholds(self) -> NodePressure:
        try:
            thresholds.parse(thresholds.Texts.of(self))
            thresholds.own(self.eviction_own, 0.0)
        except thresholds.ThresholdError as error:
            fix = errors.suggest(error.where[-1], error.known, "known") if error.known else _FIX
            fieldtypes.refuse(str(error), fix, at=error.where)
        for name in self.pressure_limits:
            if name not in _STALLS:
                fieldtypes.refuse(
                    f"unknown average {places.show(name)}",
                    f"known: {', '.join(sorted(_STALLS))}",
                    at=("pressureLimits", name),
                )
        return self

    @model_validator(mode="after")
    def _swap(self) -> NodePressure:
        if self.swap_available is not None:
            try:
                thresholds.value("swapAvailable", "swap.available", self.swap_available)
            except thresholds.ThresholdError as error:
                fieldtypes.refuse(str(error), _FIX, at=("swapAvailable",))
        return self


_FIX = 'write quantities such as "100Mi", percentages such as "10%", durations such as "1m30s"'
_STALLS = frozenset(
    f"{resource}.{degree}.avg{seconds}"
    for resource in ("cpu", "memory", "io")
    for degree in ("some", "full")
    for seconds in (10, 60, 300)
)
