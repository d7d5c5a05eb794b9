"""KubeSchedulerConfiguration v1, read as it is, and our own document beside it.

Covers: profiles, plugin sets by extension point, weights, arguments, leader election; warnings and
errors about plugins that are not here. Does not cover: clients, ports (options of the command),
what our own document says (``disruption.settings``).

Rules:
1. ``multiPoint`` first, then the points: ``disabled`` (``*``: all) takes away, ``enabled`` adds.
2. A known plugin that we lack is an error where it is enabled by name, a warning where it is
   disabled or has arguments. An unknown one is an error that names it.
3. Without profiles, one default profile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from koordlet.model import errors, moment
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import settings
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework import Plugin, profile
from koordlet.scheduler.framework.queue import FIRST, LONGEST, Backoff
from koordlet.scheduler.loop.election import Terms
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.plugins import registry
from koordlet.scheduler.plugins.capacity_scheduling import CapacityScheduling
from koordlet.scheduler.plugins.coscheduling import Coscheduling
from koordlet.scheduler.plugins.elastic_quota import ElasticQuotaPlugin

#: Points at which a set of its own makes a difference here.
_POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
    "permit", "preBind", "bind", "postBind",
)  # fmt: skip


_TOP = frozenset(
    {
        "apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "extenders",
        "enableProfiling", "enableContentionProfiling", "percentageOfNodesToScore", "profiles",
        "podInitialBackoffSeconds", "podMaxBackoffSeconds", "delayCacheUntilActive",
    }
)  # fmt: skip
_PROFILE = frozenset({"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"})
_API_VERSION = "kubescheduler.config.k8s.io/v1"
#: Weights are 32-bit integers.
_WEIGHTS = 2**31
_SHARE, _EVERY = "percentageOfNodesToScore", 100


@dataclass(frozen=True, slots=True)
class Configuration:
    """The profiles by scheduler name, and warnings."""

    profiles: Mapping[str, profile.Profile]
    warnings: tuple[str, ...] = ()
    #: ``None``: nobody is to be elected.
    election: Terms | None = field(default_factory=Terms)
    backoff: Backoff = field(default_factory=Backoff)
    disruption: DisruptionSettings = field(default_factory=DisruptionSettings)

    @property
    def deciding(self) -> frozenset[str]:
        """Annotations of pods that the plugins of any profile read."""
        return profile.deciding(self.profiles.values())


def usual() -> Configuration:
    """Without a file: the default plugins, under the names that we serve."""
    return Configuration({name: profile.default(name) for name in profile.SERVED})


def read(body: Body, where: str) -> Configuration:
    """Read a KubeSchedulerConfiguration; ``ConfigError`` names what is not supported."""
    try:
        return _read(body, where)
    except BadObjectError as error:
        raise errors.ConfigError(str(error), culprit=where) from error


def read_all(bodies: Sequence[Body], where: str) -> Configuration:
    """Read the documents of a file: at most one of each kind, in any order."""
    ours = [body for body in bodies if body.get("kind") == settings.KIND]
    others = [body for body in bodies if body.get("kind") != settings.KIND]
    if not bodies or len(ours) > 1 or len(others) > 1:
        raise errors.ConfigError(
            "not one document of a kind",
            culprit=where,
            fix=f"keep one KubeSchedulerConfiguration and at most one {settings.KIND}",
        )
    configuration = read(others[0], where) if others else usual()
    if not ours:
        return configuration
    return dataclasses.replace(configuration, disruption=settings.read(ours[0], where))


def _read(body: Body, where: str) -> Configuration:
    if wire.text(body, "kind") != "KubeSchedulerConfiguration":
        raise BadObjectError("kind is not KubeSchedulerConfiguration")
    version = wire.text(body, "apiVersion")
    if version != _API_VERSION:
        raise BadObjectError(f"apiVersion {version!r} is not {_API_VERSION}")
    if wire.integer(body, "parallelism", 1) <= 0:
        raise BadObjectError("parallelism: must be above 0")
    warnings: list[str] = []
    warnings += _stray(body, _TOP, where)
    profiles: dict[str, profile.Profile] = {}
    for spec in wire.bodies(body, "profiles") or [{}]:
        made = _Reader({**_shared(body), **spec}, where, warnings).profile()
        if made.name in profiles:
            raise BadObjectError(f"two profiles are named {made.name!r}")
        profiles[made.name] = made
    _judge_quotas(profiles)
    if len({served.sorter.name if served.sorter else "" for served in profiles.values()}) > 1:
        raise BadObjectError(
            "queueSort: all profiles must enable the same plugin, as they share one queue"
        )
    if wire.bodies(body, "extenders"):
        warnings.append(f"{where}: extenders are not supported and are ignored")
    terms = election(wire.mapping(body, "leaderElection"), Terms())
    return Configuration(profiles, tuple(warnings), terms, _backoff(body))


def _judge_quotas(profiles: Mapping[str, profile.Profile]) -> None:
    """Refuse two meanings of one kind: what one plugin admits, the other would call back."""
    by_name = {plugin.name: name for name, served in profiles.items() for plugin in served.plugins}
    both = ElasticQuotaPlugin.name, CapacityScheduling.name
    if by_name.keys() >= set(both):
        where = ", ".join(f"profile {by_name[plugin]!r} enables {plugin}" for plugin in both)
        raise BadObjectError(
            f"an ElasticQuota has one meaning: {where}; disable one of them in every profile"
        )


def _shared(body: Body) -> Body:
    """The settings of every profile that has none of its own."""
    return {_SHARE: body[_SHARE]} if body.get(_SHARE) is not None else {}


def _backoff(body: Body) -> Backoff:
    first = wire.integer(body, "podInitialBackoffSeconds", int(FIRST))
    longest = wire.integer(body, "podMaxBackoffSeconds", int(LONGEST))
    if not 0 < first <= longest:
        raise BadObjectError(
            f"podInitialBackoffSeconds {first} must be above 0 and at most podMaxBackoffSeconds"
        )
    return Backoff(float(first), float(longest))


def election(body: Body, usual: Terms) -> Terms | None:
    """The lease of a component and its times; ``None``: nobody is to be elected."""
    if not wire.flag(body, "leaderElect", default=True):
        return None
    terms = Terms(
        name=wire.text(body, "resourceName") or usual.name,
        namespace=wire.text(body, "resourceNamespace") or usual.namespace,
        lease_seconds=_seconds(body, "leaseDuration", usual.lease_seconds),
        renew_seconds=_seconds(body, "renewDeadline", usual.renew_seconds),
        retry_seconds=_seconds(body, "retryPeriod", usual.retry_seconds),
    )
    if not terms.lease_seconds > terms.renew_seconds > 1.2 * terms.retry_seconds > 0:
        raise BadObjectError(
            "leaderElection: leaseDuration must exceed renewDeadline, and that retryPeriod * 1.2"
        )
    return terms


def _seconds(body: Body, key: str, usual: float) -> float:
    """A duration as Go spells it: ``15s``, ``1m30s``."""
    spelled = wire.text(body, key)
    if not spelled:
        return usual
    try:
        return moment.duration(spelled)
    except ValueError as error:
        raise BadObjectError(f"{key}: {error}") from error


def _candidates(args: Body) -> profile.Candidates:
    usual = profile.Candidates()
    share = wire.integer(args, "minCandidateNodesPercentage", usual.share)
    least = wire.integer(args, "minCandidateNodesAbsolute", usual.least)
    if not 0 <= share <= _EVERY or least < 0 or not share + least:
        raise BadObjectError(
            f"DefaultPreemption: {share} % and {least} nodes: from 0 to 100 %, not both of them 0"
        )
    return profile.Candidates(share, least)


def _stray(body: Body, known: frozenset[str], where: str) -> list[str]:
    """Warn of unknown fields, which kube-scheduler refuses."""
    return [f"{where}: {key!r} is an unknown field and is ignored" for key in body.keys() - known]


class _Reader:
    """One profile."""

    def __init__(self, body: Body, where: str, warnings: list[str]) -> None:
        self._body = body
        self._where = where
        self._warnings = warnings
        self._known = registry.known()
        self._sets = wire.mapping(body, "plugins")
        warnings += _stray(body, _PROFILE, f"{where}: a profile")
        warnings += [
            f"{where}: plugins.{point} is not an extension point and is ignored"
            for point in self._sets
            if point not in {"multiPoint", *_POINTS}
        ]

    def profile(self) -> profile.Profile:
        """The profile with its plugins made."""
        name = wire.text(self._body, "schedulerName") or profile.DEFAULT_NAME
        base = {plugin.name: weight for plugin, weight in registry.DEFAULT}
        if self._enables(CapacityScheduling.name) and not self._enables(ElasticQuotaPlugin.name):
            del base[ElasticQuotaPlugin.name]  # the other meaning of the same objects
        every = self._apply("multiPoint", base)
        at = {point: self._apply(point, every) for point in _POINTS}
        args = self._arguments()
        wanted = list(dict.fromkeys(name for each in (every, *at.values()) for name in each))
        made: dict[str, Plugin] = {
            name: self._known[name][0](args.get(name, {})) for name in wanted if name in self._known
        }
        for plugin in made.values():
            self._warnings += [f"{self._where}: {why}" for why in plugin.warnings]
        scores = [(made[name], weight) for name, weight in at["score"].items() if name in made]
        return profile.Profile(
            name,
            tuple(made.values()),
            tuple(made[name] for name in at["filter"] if name in made),
            tuple((plugin, weight or 1) for plugin, weight in scores),
            preempts=self._preempts(),
            sorter=self._sorter(made),
            share=self._share(),
            candidates=_candidates(args.get("DefaultPreemption", {})),
        )

    def _enables(self, name: str) -> bool:
        """Whether the profile enables a plugin by name, at any point."""
        return any(
            wire.text(entry, "name") == name
            for point in self._sets
            for entry in wire.bodies(wire.mapping(self._sets, point), "enabled")
        )

    def _share(self) -> int:
        """The percentage of nodes to score; 0 (kube-scheduler chooses) means all of them."""
        share = wire.integer(self._body, _SHARE)
        if not 0 <= share <= _EVERY:
            raise BadObjectError(f"{_SHARE}: {share} is not a percentage")
        if 0 < share < _EVERY:
            self._warnings.append(
                f"{self._where}: {share} % of the nodes are scored, as configured"
            )
        return share or _EVERY

    def _sorter(self, made: Mapping[str, Plugin]) -> Plugin | None:
        """The plugin that orders the queue; another author's replaces ours."""
        body = wire.mapping(self._sets, "queueSort")
        names = [wire.text(entry, "name") for entry in wire.bodies(body, "enabled")]
        if names == [Coscheduling.name]:
            return None  # the order of groups is ours already
        sorters = [made[name] for name in names if name in made]
        if any(type(plugin).queue_key is Plugin.queue_key for plugin in sorters) or len(names) > 1:
            raise BadObjectError(
                "queueSort: exactly one plugin that orders the queue must be enabled"
            )
        return sorters[0] if sorters else None

    def _preempts(self) -> bool:
        for point in ("multiPoint", "postFilter"):
            body = wire.mapping(self._sets, point)
            off = {wire.text(entry, "name") for entry in wire.bodies(body, "disabled")}
            on = {wire.text(entry, "name") for entry in wire.bodies(body, "enabled")}
            if off & {"*", "DefaultPreemption"} and not on & {
                "DefaultPreemption",
                CapacityScheduling.name,
            }:
                return False
        return True

    def _apply(self, point: str, base: Mapping[str, int]) -> dict[str, int]:
        body = wire.mapping(self._sets, point)
        weights = dict(base)
        for entry in wire.bodies(body, "disabled"):
            name = wire.text(entry, "name")
            self._judge(name, enabled=False)
            if name == "*":
                weights.clear()
            weights.pop(name, None)
        several = [wire.text(entry, "name") for entry in wire.bodies(body, "enabled")]
        twice = {name for name in several if several.count(name) > 1}
        # That there is one order of the queue is said in words of its own.
        if twice and point != "queueSort":
            raise BadObjectError(f"{point}: plugin {min(twice)!r} is enabled more than once")
        for name, entry in zip(several, wire.bodies(body, "enabled"), strict=True):
            self._judge(name, enabled=True)
            weight = wire.integer(entry, "weight") or base.get(name, 0)
            if not 0 <= weight < _WEIGHTS:
                raise BadObjectError(f"{point}: a weight of {weight} for plugin {name!r}")
            if name not in registry.BUILT_IN:
                weights[name] = weight or self._known[name][1]
        return weights

    def _judge(self, name: str, *, enabled: bool) -> None:
        if name in self._known or name in registry.BUILT_IN or (name == "*" and not enabled):
            return
        if name not in registry.LACKING:
            raise BadObjectError(f"plugin {name!r} is unknown")
        if enabled:
            raise BadObjectError(f"plugin {name!r} is enabled, but this scheduler does not have it")
        self._warnings.append(
            f"{self._where}: plugin {name} is disabled, and this scheduler does not have it"
        )

    def _arguments(self) -> dict[str, Mapping[str, Any]]:
        arguments: dict[str, Mapping[str, Any]] = {}
        for entry in wire.bodies(self._body, "pluginConfig"):
            name = wire.text(entry, "name")
            if name in registry.LACKING:
                self._warnings.append(
                    f"{self._where}: arguments of plugin {name}, which this scheduler does not have"
                )
            elif name not in self._known and name not in registry.BUILT_IN:
                raise BadObjectError(f"pluginConfig of the unknown plugin {name!r}")
            if name in arguments:
                raise BadObjectError(f"pluginConfig: repeated config for plugin {name}")
            arguments[name] = wire.mapping(entry, "args")
        return arguments
