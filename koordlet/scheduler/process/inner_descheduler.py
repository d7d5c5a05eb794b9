"""The descheduler that is a part of a scheduler's process.

Covers: its settings where nobody wrote any, its neighbours. Does not cover: when it works
(``lifecycle``), rounds (``loop.descheduler``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from koordlet.kubeapi import objects
from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
from koordlet.scheduler.descheduling.limits import RoundLimits
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.loop import descheduler, runner
from koordlet.scheduler.process import prometheus_client


def make(
    settings: DeschedulerSettings | None,
    profiles: Mapping[str, Profile],
    store: objects.Objects,
    scheduler: runner.Loop,
    *,
    alone: bool,
) -> descheduler.Descheduler:
    """Make it; ``alone``: without a cluster, where it has nobody to be elected against."""
    if settings is None:
        settings = DeschedulerSettings(kind="", profiles=(), limits=RoundLimits())
    if alone:
        settings = dataclasses.replace(settings, election=None)
    interval = settings.interval_seconds or descheduler.INTERVAL
    return descheduler.Descheduler(
        store,
        dataclasses.replace(settings, interval_seconds=interval),
        instance=scheduler.instance,
        profiles=profiles,
        watched=scheduler,
        ask=prometheus_client.asking(store, settings),
    )
