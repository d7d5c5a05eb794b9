"""A profile: which plugins, in which order, with which weights.

Covers: the profile in use. Does not cover: reading KubeSchedulerConfiguration
(``scheduler.loop.configuration``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from koordlet.model.record import dataclass
from koordlet.scheduler.framework import Plugin
from koordlet.scheduler.plugins import registry

_Plugin = TypeVar("_Plugin", bound=Plugin)

DEFAULT_NAME = "default-scheduler"
#: Whom pods ask for when they mean us; never the cluster's own scheduler, unless configured.
SERVED = ("koord-scheduler", "koordlet-scheduler")


@dataclass(frozen=True, slots=True)
class Candidates:
    """How many nodes are tried before the best of them is preempted on: per cent, and at least."""

    share: int = 10
    least: int = 100

    def of(self, potential: int) -> int:
        """The number of candidates to try, of so many nodes where preemption might help."""
        return min(potential, max(potential * self.share // 100, self.least))


@dataclass(frozen=True, slots=True)
class Profile:
    """Plugins by the point at which they take part."""

    name: str
    plugins: tuple[Plugin, ...]
    filters: tuple[Plugin, ...]
    scores: tuple[tuple[Plugin, int], ...]
    preempts: bool = True
    #: Who orders the queue; ``None``: priority and time.
    sorter: Plugin | None = None
    #: Per cent of the nodes that have to be found feasible before the best of them is taken: less
    #: than all is there to be compared with.
    share: int = 100
    candidates: Candidates = field(default_factory=Candidates)

    def __post_init__(self) -> None:
        for plugin in self.plugins:
            plugin.meet(self.plugins)

    def find(self, plugin_class: type[_Plugin]) -> _Plugin | None:
        """The profile's plugin of a class."""
        return next((plugin for plugin in self.plugins if isinstance(plugin, plugin_class)), None)

    def having(self, *points: str) -> tuple[Plugin, ...]:
        """The plugins that take part at one of these points, in their order."""
        return tuple(
            plugin
            for plugin in self.plugins
            if any(getattr(type(plugin), point) is not getattr(Plugin, point) for point in points)
        )


def plugins(profiles: Mapping[str, Profile], plugin_class: type[_Plugin]) -> list[_Plugin]:
    """The plugins of a class in all profiles."""
    return [
        plugin
        for profile in profiles.values()
        if (plugin := profile.find(plugin_class)) is not None
    ]


def deciding(profiles: Iterable[Profile]) -> frozenset[str]:
    """Annotations of pods that any plugin reads; the decoder keeps them."""
    return frozenset().union(
        *(plugin.deciding for profile in profiles for plugin in profile.plugins)
    )


def default(
    name: str = DEFAULT_NAME, arguments: Mapping[str, Mapping[str, Any]] | None = None
) -> Profile:
    """The plugins and weights of Kubernetes' default profile."""
    args = arguments or {}
    made = [(plugin(args.get(plugin.name, {})), weight) for plugin, weight in registry.DEFAULT]
    plugins = tuple(plugin for plugin, _ in made)
    return Profile(name, plugins, plugins, tuple(each for each in made if each[1]))
