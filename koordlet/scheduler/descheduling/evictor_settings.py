"""The arguments of the two peers' evictors, read into one meaning.

Covers: upstream's DefaultEvictor, Koordinator's MigrationController. Does not cover: who may be
evicted by them (``evictability``), the life of a migration job.
"""

from __future__ import annotations

import enum
from dataclasses import field

from koordlet.kubeapi import disruption_rates, selectors
from koordlet.kubeapi.disruption_rates import CountOrPercent
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import selection, traits
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.disruption.limiter import SYSTEM_CRITICAL

DEFAULT, MIGRATION = "DefaultEvictor", "MigrationController"


class Protection(enum.Enum):
    """What keeps a pod from being evicted."""

    LOCAL_STORAGE = "PodsWithLocalStorage"
    SYSTEM_CRITICAL = "SystemCriticalPods"
    FAILED_BARE = "FailedBarePods"
    DAEMON_SET = "DaemonSetPods"
    PVC = "PodsWithPVC"
    WITHOUT_BUDGET = "PodsWithoutPDB"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"


_USUAL = frozenset(
    (
        *(Protection.LOCAL_STORAGE, Protection.SYSTEM_CRITICAL),
        *(Protection.FAILED_BARE, Protection.DAEMON_SET),
    )
)
_EXTRA = frozenset(Protection) - _USUAL
#: Checks of the MigrationController that ``skipEvictionGates`` may name.
GATES = (
    *("MaxMigratingGlobally", "MaxMigratingPerNode", "MaxMigratingPerNamespace"),
    *("MaxMigratingPerWorkload", "MaxUnavailablePerWorkload", "ExpectedReplicas", "NodeFit"),
    *("LabelSelector", "PriorityThreshold", "LocalStorage", "SystemCritical", "PVC", "BarePods"),
    "Namespaces",
)
MODES = RESERVATION_FIRST, EVICT_DIRECTLY = "ReservationFirst", "EvictDirectly"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityThreshold:
    """Only pods below it are evicted: a value, or the name of a class that has one."""

    value: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRate:
    """How many jobs of one workload, or of one namespace, may begin in which time."""

    #: 0: any number.
    seconds: float = 0.0
    #: ``None``: as many as may migrate at once.
    most: CountOrPercent | None = None
    #: So many may begin at once.
    burst: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationSettings:
    """How migration jobs of one profile are made and bounded."""

    mode: str = RESERVATION_FIRST
    ttl_seconds: float = 300.0
    scheduler_names: frozenset[str] = frozenset({"koord-scheduler", "koordlet-scheduler"})
    max_globally: int | None = None
    max_per_node: int | None = 2
    max_per_namespace: int | None = None
    max_per_workload: CountOrPercent | None = None
    max_unavailable: CountOrPercent | None = None
    workload_rate: JobRate = JobRate(seconds=300.0)
    namespace_rate: JobRate = JobRate()
    #: Bounds that do not count, by the reasons that they would give.
    skipped: frozenset[str] = frozenset()
    #: Of the pods that it evicts, unless the whole configuration says it.
    grace_seconds: int | None = None
    arbitrates: bool = True
    arbitration_seconds: float = 0.5
    checks_replicas: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictorSettings:
    """Who may be evicted, and how."""

    name: str = DEFAULT
    pods: selection.PodSelection = selection.ALL_PODS
    namespace_selector: selectors.Compiled | None = None
    node_selector: selectors.Compiled | None = None
    threshold: PriorityThreshold | None = None
    node_fit: bool = False
    protections: frozenset[Protection] = _USUAL
    #: Of ``PodsWithPVC``; ``None``: claims of all classes.
    storage_classes: frozenset[str] | None = None
    #: Pods that nobody would create again.
    bare: bool = False
    min_replicas: int = 0
    min_age_seconds: float | None = None
    #: ``prefer-no-eviction`` forbids, and does not only put a pod last.
    mandatory: bool = False
    dry_run: bool = False
    per_second: float = 10.0
    burst: int = 1
    policy: str = "Eviction"
    migration: MigrationSettings = field(default_factory=MigrationSettings)

    def grace(self, usual: int | None) -> int | None:
        """The grace period of its pods; ``usual``: that of the whole configuration."""
        return self.migration.grace_seconds if usual is None else usual

    @property
    def migrates(self) -> bool:
        """Whether Koordinator's evictor is meant."""
        return self.name == MIGRATION


def read(name: str, fields: Fields) -> EvictorSettings:
    """The arguments of an evictor."""
    return _migration(fields) if name == MIGRATION else _default(fields)


def _threshold(fields: Fields) -> PriorityThreshold | None:
    if fields.get("priorityThreshold") is None:
        return None
    child = fields.child("priorityThreshold")
    # Go's int32 may be negative.
    value = child.whole("value", low=-(2**31))
    if value is not None and value > SYSTEM_CRITICAL:
        child.fail("value", f"{value} is above {SYSTEM_CRITICAL}, where system-critical pods begin")
    name = child.text("name")
    child.done()
    if value is not None and name:
        fields.fail("priorityThreshold", "only one of value and name can be set")
    return PriorityThreshold(value=value, name=name)


def _default(fields: Fields) -> EvictorSettings:
    age = fields.seconds("minPodAge")
    protections, classes = _protections(fields)
    settings = EvictorSettings(
        pods=selection.PodSelection(selector=fields.selector("labelSelector")),
        namespace_selector=fields.selector("namespaceLabelSelector"),
        node_selector=fields.selector("nodeSelector"),
        threshold=_threshold(fields),
        node_fit=fields.flag("nodeFit"),
        protections=protections,
        storage_classes=classes,
        min_replicas=fields.count("minReplicas"),
        min_age_seconds=age,
        mandatory=fields.word("noEvictionPolicy", ("Preferred", "Mandatory"), "Preferred")
        == "Mandatory",
        per_second=float("inf"),
    )
    fields.done()
    return settings


def _protections(fields: Fields) -> tuple[frozenset[Protection], frozenset[str] | None]:
    """The two lists, or where both are empty the older switches; both together contradict."""
    child = fields.child("podProtections")
    disabled = _listed(child, "defaultDisabled", _USUAL)
    extra = _listed(child, "extraEnabled", _EXTRA)
    config = child.child("config")
    claims = config.child("PodsWithPVC")
    names = frozenset(row.text("name") for row in claims.children("protectedStorageClasses"))
    for each in (claims, config, child):
        each.done()
    if "" in names:
        claims.fail("protectedStorageClasses", "a storage class without a name")
    old = {
        key: fields.flag(key)
        for key in (
            *("evictLocalStoragePods", "evictDaemonSetPods", "evictSystemCriticalPods"),
            *("evictFailedBarePods", "ignorePvcPods", "ignorePodsWithoutPDB"),
        )
    }
    if disabled or extra:
        for key in (key for key, is_on in old.items() if is_on):
            fields.fail(key, "does not count beside podProtections", "say there what it says")
        return _USUAL - disabled | extra, names or None
    off = (
        (Protection.LOCAL_STORAGE, old["evictLocalStoragePods"]),
        (Protection.DAEMON_SET, old["evictDaemonSetPods"]),
        (Protection.SYSTEM_CRITICAL, old["evictSystemCriticalPods"]),
        (Protection.FAILED_BARE, old["evictFailedBarePods"]),
        (Protection.PVC, not old["ignorePvcPods"]),
        (Protection.WITHOUT_BUDGET, not old["ignorePodsWithoutPDB"]),
        (Protection.RESOURCE_CLAIMS, True),
    )
    return frozenset(protection for protection, is_off in off if not is_off), names or None


def _listed(fields: Fields, key: str, known: frozenset[Protection]) -> frozenset[Protection]:
    by_name = {protection.value: protection for protection in sorted(known, key=lambda p: p.value)}
    names = fields.texts(key)
    for name in names:
        if name not in by_name:
            fields.fail(key, f"{name!r} is none of {', '.join(by_name)}")
        if names.count(name) > 1:
            fields.fail(key, f"{name!r} is listed twice")
    return frozenset(by_name[name] for name in names)


def _migration(fields: Fields) -> EvictorSettings:
    skipped = fields.texts("skipEvictionGates")
    if stray := [gate for gate in skipped if gate not in GATES]:
        fields.fail("skipEvictionGates", f"{stray[0]!r} is none of {', '.join(GATES)}")
    all_bare, failed_bare = fields.flag("evictAllBarePods"), fields.flag("evictFailedBarePods")
    off = (
        (Protection.DAEMON_SET, False),
        (Protection.FAILED_BARE, failed_bare or all_bare or "BarePods" in skipped),
        (
            Protection.LOCAL_STORAGE,
            fields.flag("evictLocalStoragePods") or "LocalStorage" in skipped,
        ),
        (
            Protection.SYSTEM_CRITICAL,
            fields.flag("evictSystemCriticalPods") or "SystemCritical" in skipped,
        ),
        (Protection.PVC, not fields.flag("ignorePvcPods") or "PVC" in skipped),
    )
    pods, threshold = selection.pods(fields), _threshold(fields)
    settings = EvictorSettings(
        name=MIGRATION,
        pods=selection.PodSelection(
            namespaces=selection.EVERYTHING if "Namespaces" in skipped else pods.namespaces,
            selector=None if "LabelSelector" in skipped else pods.selector,
        ),
        node_selector=fields.selector("nodeSelector"),
        threshold=None if "PriorityThreshold" in skipped else threshold,
        node_fit=fields.flag("nodeFit") and "NodeFit" not in skipped,
        protections=frozenset(protection for protection, is_off in off if not is_off),
        bare=all_bare or "BarePods" in skipped,
        dry_run=fields.flag("dryRun"),
        per_second=float(fields.read("evictQPS", _rate, 10.0)),
        burst=fields.count("evictBurst", 1, low=1),
        policy=fields.word("evictionPolicy", traits.POLICIES, "Eviction"),
        migration=_jobs(fields, skipped),
    )
    fields.count("maxConcurrentReconciles", 1, low=1)  # steps of jobs are not counted here
    fields.done()
    return settings


def _jobs(fields: Fields, skipped: tuple[str, ...]) -> MigrationSettings:
    deletion = fields.child("defaultDeleteOptions")
    rates = fields.child("objectLimiters")
    arbitration = fields.child("arbitrationArgs")
    settings = MigrationSettings(
        mode=fields.word("defaultJobMode", MODES, RESERVATION_FIRST),
        ttl_seconds=fields.seconds("defaultJobTTL", 300.0) or 0.0,
        scheduler_names=frozenset(fields.texts("schedulerNames"))
        or MigrationSettings().scheduler_names,
        # 0 bounds nothing.
        max_globally=fields.count("maxMigratingGlobally") or None,
        max_per_node=fields.count("maxMigratingPerNode", 2) or None,
        max_per_namespace=fields.count("maxMigratingPerNamespace") or None,
        max_per_workload=fields.read("maxMigratingPerWorkload", _amount),
        max_unavailable=fields.read("maxUnavailablePerWorkload", _amount),
        workload_rate=_job_rate(rates, "workload", 0.0 if rates.body else 300.0),
        namespace_rate=_job_rate(rates, "namespace", 0.0),
        skipped=frozenset(skipped),
        grace_seconds=deletion.whole("gracePeriodSeconds"),
        arbitrates=arbitration.flag("enabled", default=True),
        arbitration_seconds=arbitration.seconds("interval", 0.5) or 0.5,
        checks_replicas=not fields.flag("skipCheckExpectedReplicas")
        and "ExpectedReplicas" not in skipped,
    )
    rates.done()
    arbitration.done()
    if deletion.get("dryRun"):
        deletion.fail("dryRun", "is not served", "set dryRun of the MigrationController instead")
    deletion.done("propagationPolicy", "preconditions", "orphanDependents")
    return settings


def _job_rate(fields: Fields, key: str, usual: float) -> JobRate:
    """One limit of ``objectLimiters``; what is given without a duration is for five minutes."""
    child = fields.child(key)
    rate = JobRate(
        seconds=child.seconds("duration", 300.0 if child.body else usual) or 0.0,
        most=child.read("maxMigrating", _amount),
        burst=child.count("burst", 1) or 1,
    )
    child.done()
    if key == "namespace" and rate.seconds and (rate.most is None or rate.most.percent):
        child.fail("maxMigrating", "needs a number of pods: a namespace has no replicas")
    return rate


def _amount(value: object, _problems: list[str]) -> CountOrPercent:
    """A number or a percentage; more than all is all, as the peer has it."""
    text = value.removesuffix("%") if isinstance(value, str) else ""
    if text.isascii() and text.isdecimal() and len(text) < len(str(value)):
        return CountOrPercent(min(100, int(text[:9])), percent=True)
    return disruption_rates.count_or_percent(value)


def _rate(value: object, _problems: list[str]) -> float:
    """A number, also one that is spelled as a text."""
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not 0 < number < 1e6:
        raise ValueError(f"expected a number above 0, found {value!r}")
    return number
