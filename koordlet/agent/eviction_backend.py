"""Puts together who carries out evictions on this node.

Covers: the choice between API server and this machine, what is not exceeded.
Does not cover: evicting (``apply.evictor``), who shall go (``policy``).

Loaded once the agent runs: before that nobody is evicted.
"""

from __future__ import annotations

import time
import typing

from koordlet.apply import evictor

if typing.TYPE_CHECKING:
    from koordlet.agent import tick
    from koordlet.kubeapi import objects


def make(
    run: tick.Tick, store: objects.Objects | None, report: evictor.Report, *, alone: bool
) -> evictor.Evictor:
    """The evictor. ``alone``: no kubelet and no control plane says who runs here."""
    bound = run.effective.config.policies.node_pressure.limits
    return evictor.Evictor(
        _way(run, store, alone=alone),
        report=report,
        limits=evictor.Limits(in_flight=bound.in_flight, per_minute=bound.per_minute),
    )


def _way(run: tick.Tick, store: objects.Objects | None, *, alone: bool) -> evictor.Way | str:
    said = run.effective.config.eviction
    by = said.by if said.by != "auto" else ("local" if alone else "api")
    if by == "local":
        from koordlet.apply import local_eviction  # noqa: PLC0415 -- the other way needs none of it

        return local_eviction.LocalEviction(run.host, run.observer.layout)
    if store is None:
        return "no API server is configured: set kube.mode, or eviction.by: local"
    from koordlet.apply import api_eviction  # noqa: PLC0415 -- as above

    return api_eviction.ApiEviction(
        store, node=run.node.name, clock=time.time, delete=by == "delete", dry_run=said.dry_run
    )
