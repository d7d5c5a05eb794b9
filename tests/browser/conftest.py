"""A browser, and a console whose state a test sets."""

from __future__ import annotations

import dataclasses
import json
import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from koordlet.http import server
from koordlet.model import counters, cpuset, decision, ledger, meter, reservation, snapshot
from koordlet.report import http_api, view
from tests.kit import loops, views

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Console:
    """An agent's HTTP server over views of a test."""

    def __init__(self, now: view.View, audit: Path) -> None:
        self.now = now
        self.loop = loops.LoopThread()
        self.api = http_api.Api(
            lambda: self.now,
            version="1.2.3",
            audit=audit,
            monotonic=lambda: self.now.snapshot.at,
        )
        self.server = server.Server("127.0.0.1:0", self.api.routes())
        self.address = self.loop.run(self.server.start())

    def show(self, now: view.View) -> None:
        """There is another state."""
        self.now = now
        self.loop.call(self.api.channel.publish)

    def restart(self) -> None:
        """The same agent again, at the same address."""
        self.server = server.Server(self.address, self.api.routes())
        self.loop.run(self.server.start())

    def stop(self) -> None:
        """No agent any more."""
        self.loop.run(self.server.stop())

    def close(self) -> None:
        """The end."""
        self.stop()
        self.loop.close()


def full(cpus: int = 8, **changes: object) -> view.View:
    """A node with something in every panel."""
    shown = views.view(found=views.machine(cpus), **changes)  # type: ignore[arg-type]
    held = reservation.Reservation(name="spare", phase="Available", node="n1")
    source = snapshot.Source(name="kubelet", ok=False, last_good=90.0, problem="refused")
    seen = dataclasses.replace(shown.snapshot, reservations=(held,), sources=(source,))
    signals = (
        decision.Signal(
            name="memory.available", observed="80Mi", threshold="100Mi", met=True, why=""
        ),
        decision.Signal(
            name="pid.available", observed="", threshold="10%", met=None, why="no measurement"
        ),
    )
    conditions = (
        decision.Condition(
            type="ExclusiveCPUsRefused", status=True, reason="x", message="CPUs 2: taken"
        ),
    )
    made = dataclasses.replace(shown.plan, signals=signals, conditions=conditions)
    busy = counters.Table(
        slots={"": 0}, columns={meter.CPU: array("d", [2.5]), meter.MEMORY: array("d", [1e9])}
    )
    used = dataclasses.replace(shown.used, node=busy)
    return dataclasses.replace(shown, snapshot=seen, plan=made, used=used)


def owned(now: view.View, cpus: str) -> view.View:
    """The same node, with CPUs that belong to one workload alone."""
    claim = ledger.Claim(
        owner=ledger.Owner.LSE,
        cpus=cpuset.CPUSet.parse(cpus),
        holder="default/web",
        policy="shared_pools",
        reason="exclusive CPUs of LSE default/web",
    )
    made = dataclasses.replace(now.plan, ledger=now.plan.ledger.with_([claim]))
    return dataclasses.replace(now, plan=made, revision=now.revision + 1)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it."""
    from playwright import sync_api

    program = shutil.which("chromium")
    if program is None:
        pytest.fail("no chromium: install Debian's package")
    with sync_api.sync_playwright() as play:
        made = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """One for each test, with something in its audit log."""
    audit = tmp_path / "audit.jsonl"
    record = {"time": "2026-01-31T12:00:00Z", "target": "/cg/web/cpu.max", "reason": "bursts"}
    audit.write_text(json.dumps(record) + "\n")
    made = Console(full(), audit)
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser, console: Console) -> Iterator[Page]:
    """The console's page, drawn once; whatever it complains about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(20_000)
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda one: said.append(one.text))
    made.on("pageerror", lambda one: said.append(str(one)))
    made.on("dialog", lambda one: said.append(one.message))
    made.goto(f"http://{console.address}/")
    made.wait_for_selector("body[data-ready=yes]")
    yield made
    context.close()
    # That an agent went away is the browser's own line, and what some tests are about.
    assert [one for one in said if "ERR_" not in one] == []
