"""The sections ``policies.node_pressure`` and ``policies.local_storage_evict``.

Covers: the kubelet's eviction keys under their own names, in a file or spelled as its flags are.
Does not cover: the grammar of thresholds (``model.thresholds``), the policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from koordlet.config import eviction_texts, fieldtypes, places, problems, sections
from koordlet.model import duration, thresholds


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


_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_Limits = Annotated[
    Mapping[str, str] | None,
    BeforeValidator(_map("<")),
    WithJsonSchema({"anyOf": [_TEXTS, {"type": "null"}]}),
]
_Values = Annotated[
    Mapping[str, str] | None,
    BeforeValidator(_map("=")),
    WithJsonSchema({"anyOf": [_TEXTS, {"type": "null"}]}),
]


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


def _absent(value: object) -> object:
    return {} if value is None else value


_Duration = Annotated[str, BeforeValidator(_duration), WithJsonSchema({"type": "string"})]


class NodePressureLimits(sections.Section):
    """Upper bounds, applied last."""

    in_flight: Annotated[int, Field(ge=1, le=100)] = Field(
        default=1, description="Evictions under way at a time, for each signal."
    )
    per_minute: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=10, description="Evictions begun in any minute, of all signals together."
    )


class NodePressure(sections.Section):
    """What happens when a node runs out of memory, disk, inodes or processes."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: NodePressureLimits = Field(
        default_factory=NodePressureLimits, description="Upper bounds, applied last."
    )
    act: bool | None = Field(
        default=None,
        description="Whether pods are evicted; null: on machines without a kubelet only. Beside a"
        " kubelet a threshold must be strictly earlier than the kubelet's.",
    )
    eviction_hard: _Limits = Field(
        default=None,
        description="Signal to threshold at which a pod goes at once; null is the kubelet's"
        " default, an empty map none.",
    )
    eviction_soft: _Limits = Field(
        default=None, description="Signal to threshold at which a pod goes after a grace period."
    )
    eviction_soft_grace_period: _Values = Field(
        default=None, description="Signal to the grace period of its soft threshold, such as `90s`."
    )
    eviction_minimum_reclaim: _Values = Field(
        default=None, description="Signal to what must be available on top before it is relieved."
    )
    eviction_own: Annotated[Mapping[str, str], BeforeValidator(_absent), WithJsonSchema(_TEXTS)] = (
        Field(
            default_factory=dict,
            description="Thresholds of our own: an average of memory's pressure file to the percent"
            " of lost time from which a pod goes, such as `memory.full.avg10: 40%`;"
            " `swap.available` to what shall be left, such as `10%`.",
        )
    )
    eviction_own_grace_period: _Duration = Field(
        default="10s", description="How long one of these must be met before a pod goes."
    )
    eviction_pressure_transition_period: _Duration = Field(
        default="5m0s", description="How long a condition holds after its threshold was met last."
    )
    eviction_max_pod_grace_period: Annotated[int, Field(ge=-(2**31), le=86_400)] = Field(
        default=0,
        description="The most seconds that a soft threshold leaves to a pod; less than one is one.",
    )
    merge_default_eviction_settings: bool = Field(
        default=False, description="Whether defaults count beside a given `evictionHard`."
    )
    enforce_node_allocatable: Annotated[
        tuple[str, ...], Field(strict=False), fieldtypes.ABSENT_LIST
    ] = Field(
        default=("pods",),
        description="With `pods` in it, the memory of all pods together is a signal as well.",
    )
    local_storage_capacity_isolation: bool = Field(
        default=True, description="Whether local-storage limits of pods come first."
    )
    reclaim_page_cache: bool | None = Field(
        default=None,
        description="Whether page cache is taken back first where that can be enough (cgroup v2,"
        " no swap); null: on machines without a kubelet only.",
    )
    pass_seconds: Annotated[int | None, Field(ge=1, le=60)] = Field(
        default=None,
        description="Seconds between two passes; null: ten beside a kubelet, as the kubelet has"
        " it, and every tick elsewhere. What crosses a threshold has a pass at once.",
    )
    nodefs: fieldtypes.Directory = Field(
        default=None, description="A directory on the node's file system; null: the kubelet's."
    )
    imagefs: fieldtypes.Directory = Field(
        default=None, description="A directory on the images' file system; null: the runtime's."
    )
    containerfs: fieldtypes.Directory = Field(
        default=None, description="A directory on that of writable layers; null: the images'."
    )
    memory_cgroup: fieldtypes.CgroupPath = Field(
        default=None, description="A cgroup whose memory counts as the node's; null: the root."
    )
    pressure_limits: Annotated[
        Mapping[str, Annotated[int, Field(ge=1, le=100)]], BeforeValidator(_absent)
    ] = Field(
        default_factory=dict,
        description="Percent of time lost to pressure from which a condition holds, by name, such"
        " as `memory.full.avg10`.",
    )
    workload_memory_percent: Annotated[int | None, Field(ge=1, le=100)] = Field(
        default=None,
        description="Percent of its own memory limit from which a workload makes the condition"
        " `WorkloadMemoryTight` hold; null: no such signal.",
    )
    swap_available: str | None = Field(
        default=None, description="Swap space that shall be left, such as `10%`; null: no limit."
    )

    @model_validator(mode="after")
    def _thresholds(self) -> NodePressure:
        try:
            thresholds.parse(eviction_texts.of(self))
            thresholds.own(self.eviction_own, 0.0)
        except thresholds.ThresholdError as error:
            fix = problems.suggest(error.where[-1], error.known, "known") if error.known else _FIX
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
    f"{one}.{degree}.avg{seconds}"
    for one in ("cpu", "memory", "io")
    for degree in ("some", "full")
    for seconds in (10, 60, 300)
)


class LocalStorageEvictLimits(sections.Section):
    """Local-storage limits have no upper bounds."""


class LocalStorageEvict(sections.Section):
    """Pods that hold more of the node's disk than their own limits allow."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: LocalStorageEvictLimits = Field(
        default_factory=LocalStorageEvictLimits, description="Upper bounds, applied last."
    )
    act: bool | None = Field(
        default=None,
        description="Whether offenders are evicted; null: on machines without a kubelet only.",
    )
