"""The configuration of a descheduler, in the dialects of both peers, unchanged.

Covers: upstream's DeschedulerPolicy, Koordinator's DeschedulerConfiguration, either in a ConfigMap.
Does not cover: the arguments of strategies and evictors (their modules).

Rules:
1. Names of plugins may be texts or objects with a name, in either dialect.
2. A strategy runs where it is enabled; arguments of one that is not are judged all the same. One
   of ours runs where it is not disabled (``registry.ALWAYS``): it only shows.
3. A profile has one evictor: of Koordinator the MigrationController unless another is enabled, of
   upstream the DefaultEvictor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from koordlet.kubeapi import selectors, shapes
from koordlet.model import documents, errors
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import evictor_settings, prometheus_source, registry
from koordlet.scheduler.descheduling.evictor_settings import DEFAULT, MIGRATION, EvictorSettings
from koordlet.scheduler.descheduling.fields import Fields, nearest
from koordlet.scheduler.descheduling.limits import RoundLimits
from koordlet.scheduler.descheduling.prometheus_source import PrometheusSource
from koordlet.scheduler.descheduling.round import DeschedulingStrategy, RoundProfile
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.strategies.utilization import (
    KUBERNETES_METRICS,
    PROMETHEUS,
    SOURCES,
    LowNodeUtilization,
)
from koordlet.scheduler.loop import configuration as scheduler_configuration
from koordlet.scheduler.loop.election import Terms
from koordlet.scheduler.objects.wire import BadObjectError

UPSTREAM, PEER = "DeschedulerPolicy", "DeschedulerConfiguration"
KINDS = (UPSTREAM, PEER)
_VERSIONS = ("descheduler/v1alpha2", "descheduler.koordinator.sh/v1alpha2")
_KEYS = ("koord-descheduler-config", "policy.yaml")
_EVICTORS = (DEFAULT, MIGRATION)
#: Points at which neither peer has a plugin that changes anything here.
_SORTS = ("presort", "sort")
_MOST_TEXT = 1 << 20
LEASE = Terms(name="koordlet-descheduler", namespace="kube-system")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeschedulerSettings:
    """Everything that is configured about a descheduler."""

    kind: str
    profiles: tuple[RoundProfile, ...]
    limits: RoundLimits
    #: Between two rounds; 0: one round. ``None``: the file does not say.
    interval_seconds: float | None = None
    dry_run: bool = False
    #: Of pods that go; ``None``: their own.
    grace_seconds: int | None = None
    #: ``None``: nobody is to be elected.
    election: Terms | None = LEASE
    #: ``None``: no strategy asks one.
    prometheus: PrometheusSource | None = None
    warnings: tuple[str, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """What strategies ask a Prometheus."""
        several = (strategy for profile in self.profiles for strategy in profile.strategies)
        return tuple(
            strategy.query
            for strategy in several
            if isinstance(strategy, LowNodeUtilization) and strategy.query
        )


def read_all(bodies: Sequence[Mapping[str, Any]], where: str) -> DeschedulerSettings:
    """Read the one document of a file; ``ConfigError`` names what is wrong and where."""
    unpacked = [inner for body in bodies for inner in _unpacked(body, where)]
    if len(unpacked) != 1:
        raise errors.ConfigError(
            f"{len(unpacked)} documents, and one is expected",
            culprit=where,
            fix=f"keep one {' or '.join(KINDS)}",
        )
    return read(unpacked[0], where)


def _unpacked(body: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    """What a ConfigMap holds, or the document itself."""
    if body.get("kind") != "ConfigMap":
        return [body]
    data = Fields(body, where).child("data")
    texts = [(key, data.text(key)) for key in _KEYS if data.get(key) is not None]
    if not texts:
        data.fail("", "holds no configuration", f"it stands below the key {' or '.join(_KEYS)}")
    return [
        document
        for key, text in texts
        for document in documents.of_file(text.encode(), f"{where}: {data.at(key)}", _MOST_TEXT)
        if isinstance(document, Mapping)
    ]


def read(body: Mapping[str, Any], where: str) -> DeschedulerSettings:
    """Read a configuration of either dialect."""
    fields = Fields(body, where)
    kind, version = fields.text("kind"), fields.text("apiVersion")
    if kind not in KINDS:
        fields.fail("kind", f"{kind!r} is none of {', '.join(KINDS)}")
    if version not in _VERSIONS:
        fields.fail("apiVersion", f"{version!r} is none of {', '.join(_VERSIONS)}")
    warnings: list[str] = []
    selector = fields.selector("nodeSelector")
    profiles = [
        _Profile(child, kind, selector, place).read()
        for place, child in enumerate(fields.children("profiles"))
    ]
    names = [profile.name for profile in profiles]
    if twice := [name for name in names if names.count(name) > 1]:
        fields.fail("profiles", f"two profiles are named {twice[0]!r}")
    if not profiles:
        warnings.append(f"{where}: there is no profile, so nothing is done")
    settings = DeschedulerSettings(
        kind=kind,
        profiles=tuple(profiles),
        limits=RoundLimits(
            per_node=fields.whole("maxNoOfPodsToEvictPerNode"),
            per_namespace=fields.whole("maxNoOfPodsToEvictPerNamespace"),
            total=fields.whole("maxNoOfPodsToEvictTotal"),
        ),
        interval_seconds=fields.seconds("deschedulingInterval"),
        dry_run=fields.flag("dryRun"),
        election=_election(fields),
        grace_seconds=fields.whole("gracePeriodSeconds"),
        prometheus=_prometheus(fields),
        warnings=tuple(warnings),
    )
    if settings.queries and settings.prometheus is None:
        fields.fail(
            "metricsProviders",
            f"has no {PROMETHEUS}, which LowNodeUtilization asks for {settings.queries[0]!r}",
        )
    # How the peers serve and reach an API server is not theirs to say here.
    fields.done(
        *("clientConnection", "healthzBindAddress", "metricsBindAddress", "enableProfiling"),
        *("enableContentionProfiling", "evictionFailureEventNotification"),
    )
    return settings


def _election(fields: Fields) -> Terms | None:
    body = fields.child("leaderElection").body
    try:
        return scheduler_configuration.election(body, LEASE)
    except BadObjectError as error:
        fields.fail("leaderElection", str(error))


def _prometheus(fields: Fields) -> PrometheusSource | None:
    """The Prometheus of ``metricsProviders``; our agents take the place of the others."""
    collector = fields.child("metricsCollector")
    collects = collector.flag("enabled")
    collector.done()
    sources: dict[str, PrometheusSource | None] = {}
    for provider in fields.children("metricsProviders"):
        source = str(provider.read("source", shapes.choice(*SOURCES), ""))
        if not source:
            provider.fail("source", "is missing", f"name {' or '.join(SOURCES)}")
        if source in sources:
            provider.fail("source", f"{source} is configured twice", "keep one of the two")
        if source == KUBERNETES_METRICS and collects:
            fix = "leave metricsCollector out: it is the older way to say the same"
            provider.fail("source", "does not go with metricsCollector.enabled", fix)
        sources[source] = None
        if source == PROMETHEUS:
            sources[source] = prometheus_source.read(provider.child("prometheus"))
        provider.done("prometheus")
    return sources.get(PROMETHEUS)


class _Profile:
    """One profile."""

    def __init__(
        self, fields: Fields, kind: str, selector: selectors.Compiled | None, place: int
    ) -> None:
        self._fields, self._kind, self._selector = fields, kind, selector
        usual = "koord-descheduler" if kind == PEER and place == 0 else ""
        self._name = fields.text("name") or usual
        if not self._name:
            fields.fail("name", "is missing")
        self._plugins = fields.child("plugins")

    def read(self) -> RoundProfile:
        """The profile with its strategies made."""
        arguments = self._arguments()
        strategies = [
            strategy
            for point, known in registry.POINTS.items()
            for strategy in self._strategies(point, known, arguments)
        ]
        evictor = self._evictor(arguments)
        for point in _SORTS:
            if names := self._enabled(point):
                self._plugins.fail(point, f"plugin {names[0]!r} is unknown")
        self._plugins.done()
        own = self._fields.selector("nodeSelector")
        self._fields.done()
        wanted = (self._selector, own) if self._kind == PEER else (self._selector,)

        def rows(state: ClusterState) -> list[int]:
            return state.rows(*wanted)

        return RoundProfile(
            name=self._name,
            strategies=strategies,
            evictor=evictor,
            rows=rows,
            several=self._kind == UPSTREAM,
        )

    def _arguments(self) -> dict[str, Fields]:
        """The arguments of each plugin; those of strategies that are not enabled are judged too."""
        known = (*registry.STRATEGIES, *_EVICTORS)
        arguments: dict[str, Fields] = {}
        for child in self._fields.children("pluginConfig"):
            name = child.text("name")
            if name not in known:
                child.fail("name", f"plugin {name!r} is unknown", nearest(name, known))
            if name in arguments:
                child.fail("name", f"plugin {name!r} is configured twice")
            arguments[name] = child.child("args")
            child.done()
            if name in registry.STRATEGIES:
                registry.STRATEGIES[name](arguments[name])
            else:
                evictor_settings.read(name, arguments[name])
        return arguments

    def _enabled(self, point: str) -> list[str]:
        child = self._plugins.child(point)
        names = {key: self._names(child, key) for key in ("enabled", "disabled")}
        child.done()
        enabled = dict.fromkeys(names["enabled"])
        if self._kind == PEER and len(enabled) < len(names["enabled"]):
            twice = next(name for name in enabled if names["enabled"].count(name) > 1)
            self._plugins.fail(f"{point}.enabled", f"plugin {twice!r} is listed twice")
        if point == registry.ALWAYS[0] and not {"*", registry.ALWAYS[1]} & {*names["disabled"]}:
            enabled.setdefault(registry.ALWAYS[1])
        return list(enabled)

    def _names(self, fields: Fields, key: str) -> list[str]:
        """Texts, or objects with a name (rule 1)."""
        value = fields.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            fields.fail(key, "expected a list of plugins")
        names: list[str] = []
        for item in value:
            name = item.get("name") if isinstance(item, Mapping) else item
            if not isinstance(name, str) or not name:
                fields.fail(key, f"{item!r} is no name of a plugin")
            names.append(name)
        return names

    def _strategies(
        self, point: str, known: Mapping[str, registry.Factory], arguments: Mapping[str, Fields]
    ) -> list[DeschedulingStrategy]:
        strategies = []
        for name in self._enabled(point):
            path = f"{point}.enabled"
            if name not in known:
                if name in registry.STRATEGIES:
                    other = next(each for each in registry.POINTS if each != point)
                    self._plugins.fail(path, f"{name} takes part in {other}, not in {point}")
                fix = nearest(name, registry.STRATEGIES)
                self._plugins.fail(path, f"plugin {name!r} is unknown", fix)
            where = Fields(None, self._fields.where, f"{self._fields.path}: {name}")
            strategies.append(known[name](arguments.get(name, where)))
        return strategies

    def _evictor(self, arguments: Mapping[str, Fields]) -> EvictorSettings:
        """The one evictor, with the rules of the one filter (rule 3)."""
        usual = MIGRATION if self._kind == PEER else DEFAULT
        chosen = {}
        for point in ("evict", "filter", "preEvictionFilter"):
            names = self._enabled(point) or [usual]
            if stray := [name for name in names if name not in _EVICTORS]:
                fix = nearest(stray[0], _EVICTORS)
                self._plugins.fail(f"{point}.enabled", f"plugin {stray[0]!r} is unknown", fix)
            if len(names) > 1:
                self._plugins.fail(f"{point}.enabled", "exactly one evictor can be enabled")
            chosen[point] = names[0]

        def settings(name: str) -> EvictorSettings:
            empty = Fields(None, self._fields.where, self._fields.path)
            return evictor_settings.read(name, arguments.get(name, empty))

        evictor, rules = settings(chosen["evict"]), settings(chosen["filter"])
        if evictor.name == rules.name:
            return evictor
        return replace(
            rules,
            name=evictor.name,
            dry_run=evictor.dry_run,
            per_second=evictor.per_second,
            burst=evictor.burst,
            policy=evictor.policy,
            migration=evictor.migration,
        )
