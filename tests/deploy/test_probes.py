"""The shipped probes against each health check: what they would do to a pod that works.

Covers: the probes of both workloads, every check that an agent has, stale ticks, a slow scheduler.
Does not cover: that what probes ask is served where they ask (``test_manifests``).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.http import message, routes
from koordlet.report import http_api, view
from koordlet.scheduler.process import pages
from tests.deploy.test_manifests import REPO, container
from tests.kit import recorders, schedulers, sites

#: Probes that kill a pod.
DEADLY = ("startupProbe", "livenessProbe")
READINESS = "readinessProbe"


def paths(spec: dict[str, Any]) -> dict[str, str]:
    """Probe of a container to the path that it asks for, in its own form of asking."""
    by_probe = {}
    for name in (*DEADLY, READINESS):
        probe = spec.get(name, {})
        asked = re.search(
            r"127\.0\.0\.1:\d+(/\w+)", " ".join(probe.get("exec", {}).get("command", []))
        )
        if "httpGet" in probe:
            by_probe[name] = probe["httpGet"]["path"]
        elif asked:
            by_probe[name] = asked[1]
    return by_probe


def status(table: routes.Routes, path: str) -> int:
    """What a probe gets."""
    return table.answer(message.parse(b"GET", path.encode(), [(b"host", b"x")])).status


def served(now: view.ReportView | None, *, age: float = 0.5) -> routes.Routes:
    """The agent's table, with a view of that age."""
    at = 0.0 if now is None else now.snapshot.at
    return http_api.Api(
        lambda: now,
        version="test",
        recorded=recorders.recorder(),
        monotonic=lambda: at + age,
    ).routes()


def agent(now: view.ReportView | None, *, age: float = 0.5) -> dict[str, int]:
    """What each of the agent's probes gets."""
    table = served(now, age=age)
    return {name: status(table, path) for name, path in paths(container()).items()}


@pytest.fixture
def healthy(ram: Path) -> view.ReportView:
    """What an agent publishes that is well and ready."""
    site = sites.workloads("v1", ram)
    with site.agent() as running:
        running.one_pass(slow=True)
        running.publisher.set_ready({})
        now = running.publisher.view
        assert now is not None
        return now


def failing(now: view.ReportView, names: Iterable[str]) -> view.ReportView:
    """The same with these checks failing."""
    wrong = set(names)
    checks = [dataclasses.replace(check, ok=check.name not in wrong) for check in now.checks]
    return dataclasses.replace(now, checks=tuple(checks))


def test_no_check_kills_an_agent_that_works(healthy: view.ReportView) -> None:
    """Whichever fails, or all: ticks are fresh, so it lives and stays ready; people are told."""
    names = [check.name for check in healthy.checks]
    assert {"configuration", "surfaces", "audit", "disk", "worker", "writes"} <= set(names)
    for wrong in (*([name] for name in names), names):
        now = failing(healthy, wrong)
        assert dict.fromkeys((*DEADLY, READINESS), 200) == agent(now), wrong
        assert status(served(now), "/healthz") == 503, wrong


def test_an_agent_that_is_not_ready_lives(healthy: view.ReportView) -> None:
    """Without a first verified tick, or any configuration: no traffic and no kill."""
    statuses = agent(dataclasses.replace(healthy, ready=False))
    assert {**dict.fromkeys(DEADLY, 200), READINESS: 503} == statuses


@pytest.mark.parametrize(("age", "wanted"), [(14.0, 200), (16.0, 503)])
def test_ticks_that_do_not_come(healthy: view.ReportView, age: float, wanted: int) -> None:
    """An agent whose passes fail or hang is what a restart is for."""
    assert dict.fromkeys((*DEADLY, READINESS), wanted) == agent(healthy, age=age)
    assert dict.fromkeys((*DEADLY, READINESS), 503) == agent(None)


async def test_the_scheduler_s_probes(ram: Path) -> None:
    """One that waits for its turn lives; one that decides has to come round."""
    documents = yaml.safe_load_all((REPO / "deploy/scheduler.yaml").read_text())
    (deployment,) = (document for document in documents if document["kind"] == "Deployment")
    (scheduler,) = deployment["spec"]["template"]["spec"]["containers"]
    probes = paths(scheduler)
    assert set(DEADLY) == set(probes), "two replicas, one of which decides: both are well"
    async with schedulers.scheduled(ram) as (world, loop):
        table = pages.Pages(loop).routes()
        await world.node("n1", cpu="4")
        await world.pod("web", cpu="1")
        await world.until_placed("web")
        assert loop.beat is not None
        beats = {None: 200, loop.now() - 5: 200, loop.now() - 20: 503}
        for beat, wanted in beats.items():
            loop.beat = beat
            assert {wanted} == {status(table, path) for path in probes.values()}, beat
        loop.beat = loop.now()
