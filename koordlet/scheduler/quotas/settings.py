"""Arguments of the plugin ``ElasticQuota``.

Covers: the peer's arguments and feature gates, those that change nothing here, and why.
Does not cover: what they decide (``book``, ``admission``, ``preemption``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import moment, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.quotas.validation import ValidationGates

#: The peer's bound of the default and the system quota: practically none.
UNBOUNDED = (2**63 - 1) // 5

_NAME = "ElasticQuota"


def _practically_unbounded() -> dict[str, int]:
    return dict.fromkeys((resources.CPU, resources.MEMORY), UNBOUNDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSettings:
    """What the arguments say."""

    default_max: Mapping[str, int] = field(default_factory=_practically_unbounded)
    system_max: Mapping[str, int] = field(default_factory=_practically_unbounded)
    namespace: str = "koordinator-system"
    #: Runtime bounds what is used; else the maximum.
    uses_runtime: bool = True
    checks_parents: bool = True
    scales_minimum: bool = True
    counts_unschedulable: bool = True
    #: What lent is called back, and how (``scheduler.quotas`` does not).
    monitors: bool = False
    delay_evict_seconds: float = 120.0
    revoke_interval_seconds: float = 1.0
    max_revoke_per_minute: int = 30
    #: Pods of the default quota make room inside it alone, as those of any other do.
    preempts_in_default: bool = False
    #: Pods count for nothing from the start of their end on.
    ignores_terminating: bool = False
    #: What a runtime takes for itself beside a pod counts for nothing.
    ignores_overhead: bool = False
    #: Pods that nothing names belong to the default quota.
    has_default_quota: bool = True
    gates: ValidationGates = field(default_factory=ValidationGates)
    warnings: tuple[str, ...] = ()


_KNOWN = frozenset(
    {
        "apiVersion", "kind", "delayEvictTime", "revokePodInterval", "defaultQuotaGroupMax",
        "systemQuotaGroupMax", "quotaGroupNamespace", "monitorAllQuotas", "maxRevokePerMinute",
        "enableCheckParentQuota", "enableRuntimeQuota", "enableMinQuotaScale", "featureGates",
        "countUnschedulable", "disableDefaultQuotaPreemption", "enableQueueHint",
        "quotaSnapshotUpdateInterval", "hookPlugins",
    }
)  # fmt: skip

_NO_EFFECT: Mapping[str, tuple[tuple[object, ...], str]] = {
    "enableQueueHint": ((), "a refused pod is woken when its quota has room"),
    "quotaSnapshotUpdateInterval": ((), "every change is seen at once"),
}

_GATES = {
    "ElasticQuotaEnableUpdateResourceKey",
    "ElasticQuotaGuaranteeUsage",
    "DisableDefaultQuota",
    "ElasticQuotaImmediateIgnoreTerminatingPod",
    "ElasticQuotaIgnorePodOverhead",
}


def arguments(args: Body) -> QuotaSettings:
    """Arguments as they are; ``BadObjectError`` names the one that cannot be used."""
    if args.get("hookPlugins"):
        raise BadObjectError(
            f"{_NAME}: hookPlugins: code of the peer's cannot run here; remove them"
        )
    gates = wire.mapping(args, "featureGates")
    warnings = [f"{_NAME}: {key!r} is unknown and ignored" for key in args.keys() - _KNOWN]
    warnings += [f"{_NAME}: gate {key!r} is unknown and ignored" for key in gates.keys() - _GATES]
    warnings += [
        f"{_NAME}: {key} has no effect: {why}"
        for key, (harmless, why) in _NO_EFFECT.items()
        if key in args and args[key] is not None and args[key] not in harmless
    ]
    default = QuotaSettings()
    return QuotaSettings(
        default_max=_bound(args, "defaultQuotaGroupMax"),
        system_max=_bound(args, "systemQuotaGroupMax"),
        namespace=wire.text(args, "quotaGroupNamespace") or default.namespace,
        uses_runtime=wire.flag(args, "enableRuntimeQuota", default=True),
        checks_parents=wire.flag(args, "enableCheckParentQuota", default=True),
        scales_minimum=wire.flag(args, "enableMinQuotaScale", default=True),
        counts_unschedulable=wire.flag(args, "countUnschedulable", default=True),
        monitors=wire.flag(args, "monitorAllQuotas"),
        delay_evict_seconds=_seconds(args, "delayEvictTime", default.delay_evict_seconds),
        revoke_interval_seconds=_seconds(
            args, "revokePodInterval", default.revoke_interval_seconds
        ),
        max_revoke_per_minute=_rate(args, default.max_revoke_per_minute),
        preempts_in_default=not wire.flag(args, "disableDefaultQuotaPreemption", default=True),
        ignores_terminating=wire.flag(gates, "ElasticQuotaImmediateIgnoreTerminatingPod"),
        ignores_overhead=wire.flag(gates, "ElasticQuotaIgnorePodOverhead"),
        has_default_quota=not wire.flag(gates, "DisableDefaultQuota"),
        gates=ValidationGates(
            updates_keys=wire.flag(gates, "ElasticQuotaEnableUpdateResourceKey"),
            guarantees=wire.flag(gates, "ElasticQuotaGuaranteeUsage"),
        ),
        warnings=tuple(sorted(warnings)),
    )


def _bound(args: Body, key: str) -> dict[str, int]:
    problems: list[str] = []
    bound = resources.read(wire.mapping(args, key), problems, key)
    if problems:
        raise BadObjectError(f"{_NAME}: {problems[0]}")
    return bound or _practically_unbounded()


def _seconds(args: Body, key: str, default: float) -> float:
    try:
        seconds = moment.duration(args[key]) if args.get(key) else default
    except ValueError as error:
        raise BadObjectError(f"{_NAME}: {key}: {error}") from error
    if seconds <= 0:
        raise BadObjectError(f"{_NAME}: {key}: expected more than 0 seconds")
    return seconds


def _rate(args: Body, default: int) -> int:
    rate = wire.integer(args, "maxRevokePerMinute") if "maxRevokePerMinute" in args else default
    if rate <= 0:
        raise BadObjectError(f"{_NAME}: maxRevokePerMinute: expected more than 0")
    return rate
