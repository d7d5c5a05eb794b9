"""A browser, a console whose state a test sets, and a scheduler at work with its page."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from koordlet.http import server
from koordlet.kubeapi import kinds, pod_groups
from koordlet.model import (
    best_effort,
    counters,
    cpuset,
    decision,
    eviction,
    ledger,
    meter,
    resctrl,
    reservation,
    snapshot,
)
from koordlet.report import http_api, view
from koordlet.scheduler.objects import nodes, terms
from koordlet.scheduler.process import pages
from tests.browser import looking
from tests.kit import (
    clocks,
    clusters,
    loops,
    moments,
    quotas,
    recorders,
    reservations,
    schedulers,
    views,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Console:
    """An agent's HTTP server over views of a test."""

    def __init__(self, now: view.ReportView, audit: Path) -> None:
        self.now = now
        self.loop = loops.LoopThread()
        self.clock = clocks.Clock(100_000.0)
        self.recorded = recorders.after_an_hour(clock=self.clock)
        self.api = http_api.Api(
            lambda: self.now,
            version="1.2.3",
            recorded=self.recorded,
            audit=audit,
            monotonic=lambda: self.now.snapshot.at,
        )
        self.server = server.HttpServer("127.0.0.1:0", self.api.routes())
        self.address = self.loop.run(self.server.start())

    def show(self, now: view.ReportView) -> None:
        """There is another state."""
        self.now = now
        self.loop.call(self.api.channel.publish)

    def record(self, seconds: float = 1.0, **row: float) -> None:
        """Time passes, and a row is recorded: by the names of series, with __ for the slash."""
        self.clock.now += seconds
        self.recorded.row |= {name.replace("__", "/"): value for name, value in row.items()}
        self.recorded.seconds.take(self.clock.now, self.recorded.row)
        seen = self.now.snapshot
        seen = dataclasses.replace(seen, wall=seen.wall + seconds)
        self.show(dataclasses.replace(self.now, snapshot=seen))

    def restart(self) -> None:
        """The same agent again, at the same address."""
        self.server = server.HttpServer(self.address, self.api.routes())
        self.loop.run(self.server.start())

    def stop(self) -> None:
        """No agent any more."""
        self.loop.run(self.server.stop())

    def close(self) -> None:
        """The end."""
        self.stop()
        self.loop.close()


#: An L3 of eleven ways: best-effort work fills two of them, the rest is for the others.
CACHES = resctrl.Resctrl(
    mount="/sys/fs/resctrl",
    hardware=resctrl.Hardware(
        caches=(resctrl.Cache(name="L3", mask=0x7FF, num_closids=16, domains=(0,)),),
        bandwidths=(resctrl.Bandwidth(name="MB", unit=resctrl.Unit.PERCENT, domains=(0,)),),
    ),
    groups={
        name: resctrl.Group(name=name, inode=n, schemata=f"L3:0={mask}\nMB:0={share}\n")
        for n, (name, mask, share) in enumerate(
            [("", "7ff", 100), ("LS", "7fc", 100), ("BE", "3", 40)]
        )
    },
    homes={"shop/batch": {"BE": (7, 8)}},
    usage=(resctrl.Usage(group="BE", domain="0", llc_bytes=3 << 20),),
)


def full(cpus: int = 8, **changes: Any) -> view.ReportView:
    """A node with something in every panel."""
    shown = views.view(shape=views.machine(cpus), **changes)
    held = reservation.Reservation(
        name="spare",
        phase="Available",
        node="n1",
        cpus=cpuset.CPUSet.parse("2-3"),
        match="unit=db.service",
    )
    source = snapshot.Source(name="kubelet", ok=False, last_good=90.0, problem="refused")
    seen = dataclasses.replace(
        shown.snapshot, reservations=(held,), sources=(source,), resctrl=CACHES
    )
    signals = (
        decision.Signal(
            name="memory.available", observed="80Mi", threshold="100Mi", met=True, why=""
        ),
        decision.Signal(
            name="pid.available", observed="", threshold="10%", met=None, why="no measurement"
        ),
        decision.Signal(
            name="nodefs.available", observed="30Gi", threshold="10Gi", met=False, spelled="10%"
        ),
        decision.Signal(
            name="cpu.suppress",
            observed="LS and system 1.30 cores",
            threshold="65% of 8",
            met=False,
        ),
    )
    conditions = (
        decision.Condition(
            type="ExclusiveCPUsRefused", status=True, reason="x", message="CPUs 2: taken"
        ),
    )
    victim = eviction.Eviction(
        pod="default/batch",
        uid="uid-batch",
        signal="memory.available",
        reason="Evicted",
        message="",
        policy="node_pressure",
        observed="80Mi",
        threshold="100Mi",
        held="one is on its way",
    )
    offer = best_effort.Offer(
        amounts={"kubernetes.io/batch-cpu": 2500},
        zones={1: {"kubernetes.io/batch-cpu": 1500}},
        reasons={"kubernetes.io/batch-cpu": "8000 - 65 % - what LS uses"},
        degraded="no metrics of one pod",
    )
    made = dataclasses.replace(
        shown.plan, signals=signals, conditions=conditions, evictions=(victim,), offer=offer
    )
    busy = counters.Table(
        slots={"": 0}, columns={meter.CPU: array("d", [2.5]), meter.MEMORY: array("d", [1e9])}
    )
    used = dataclasses.replace(shown.used, node=busy)
    return dataclasses.replace(shown, snapshot=seen, plan=made, used=used)


def owned(now: view.ReportView, cpus: str) -> view.ReportView:
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


def rooted(now: view.ReportView, root: str) -> view.ReportView:
    """The same node, with a cgroup tree that has these CPUs alone, and pools inside of them."""
    seen, cpus = now.snapshot, cpuset.CPUSet.parse(root)
    groups = {**seen.groups, "": moments.group("", root, unified=True)}
    pools = tuple(
        dataclasses.replace(pool, cpus=pool.cpus & cpus) for pool in now.plan.ledger.pools
    )
    book = dataclasses.replace(now.plan.ledger, pools=pools)
    return dataclasses.replace(
        now,
        snapshot=dataclasses.replace(seen, groups=groups),
        plan=dataclasses.replace(now.plan, ledger=book),
        revision=now.revision + 1,
    )


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
    record = {"at": 1769860800.0, "target": "/cg/web/cpu.max", "reason": "bursts"}
    audit.write_text(json.dumps(record) + "\n")
    made = Console(full(), audit)
    yield made
    made.close()


@contextlib.contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """The page at an address, drawn once; whatever it complains about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(20_000)
    made = context.new_page()
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(message.text))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on("dialog", lambda dialog: complaints.append(dialog.message))
    looking.load(made, address)
    yield made
    context.close()
    # That an agent went away is the browser's own line, and what some tests are about.
    assert [complaint for complaint in complaints if "ERR_" not in complaint] == []


@pytest.fixture
def page(browser: Browser, console: Console) -> Iterator[Page]:
    """The agent's page."""
    with opened(browser, console.address) as made:
        yield made


class Cluster:
    """A scheduler at work over a file, and the server of its page."""

    def __init__(self, folder: Path) -> None:
        self.loop = loops.LoopThread()
        self._stack = contextlib.AsyncExitStack()
        self.address = self.loop.run(self._open(folder))

    async def _open(self, folder: Path) -> str:
        enter = self._stack.enter_async_context
        custom = (kinds.RESERVATIONS, kinds.ELASTIC_QUOTAS)
        self.world = await enter(schedulers.world(folder, over_http=False, custom=custom))
        self.running = await enter(schedulers.scheduler(self.world.client))
        face = pages.Pages(self.running)
        await enter(face.publishing(beat=0.1))
        shown = server.HttpServer("127.0.0.1:0", face.routes())
        self._stack.push_async_callback(shown.stop)
        return await shown.start()

    def node(self, name: str, cpu: str = "4", zone: str = "") -> None:
        """One more."""
        labels = {terms.ZONE: zone} if zone else {}
        self.loop.run(self.world.node(name, cpu=cpu, labels=labels))

    def pod(self, name: str, cpu: str, quota: str = "") -> None:
        """One more."""
        labels = {f"{quotas.KEY}name": quota} if quota else {}
        self.loop.run(self.world.pod(name, cpu=cpu, labels=labels))

    def quota(self, name: str, least: str, most: str, **more: Any) -> None:
        """A share of the CPUs."""
        body = quotas.quota(name, {"cpu": least}, {"cpu": most}, **more)
        for key in ("uid", "creationTimestamp"):
            del body["metadata"][key]
        self.loop.run(self.world.store.create(kinds.ELASTIC_QUOTAS, body))

    def gang(self, name: str, minimum: int, cpu: str = "0") -> None:
        """One pod of a gang, that names its minimum."""
        notes = {pod_groups.GANG_NAME: name, pod_groups.GANG_MINIMUM: str(minimum)}
        meta = {"annotations": notes}
        self.loop.run(self.world.pod(f"{name}-0", cpu=cpu, meta=meta))

    def reserve(self, name: str, cpu: str) -> None:
        """Room for pods to come."""
        room = reservations.reservation(name, cpu=cpu)
        room["metadata"].pop("uid")
        room["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
        room.pop("status")
        self.loop.run(self.world.store.create(kinds.RESERVATIONS, room))

    def hostile(self) -> None:
        """Names that no store takes, put where the page reads."""
        core = self.running.core

        def put() -> None:
            for name in looking.HOSTILE:
                spec = {"taints": [{"key": name, "effect": "NoSchedule"}]}
                core.node(None, nodes.decode(clusters.node(name, spec=spec)), self.running.now())
                body = clusters.pod(name, cpu="64", schedulerName=schedulers.NAME)
                body["metadata"]["uid"] = name
                core.pod(None, core.decoder.decode(body, 0), self.running.now())
                core.step(self.running.now())

        self.loop.call(put)

    def close(self) -> None:
        """The end."""
        self.loop.run(self._stack.aclose())
        self.loop.close()


@pytest.fixture
def cluster(ram: Path) -> Iterator[Cluster]:
    """Two nodes, room that is held, a pod that has its place and one that fits nowhere."""
    made = Cluster(ram)
    made.node("n1")
    made.reserve("room", "2")
    made.node("n2", cpu="1")
    made.pod("web", "1")
    made.pod("big", "64")
    yield made
    made.close()


@pytest.fixture
def cluster_page(browser: Browser, cluster: Cluster) -> Iterator[Page]:
    """The page, with all that the cluster has; whatever it complains about fails the test."""
    with opened(browser, cluster.address) as page:
        looking.expect_text(page, "#listed", "2 of 2 nodes")
        looking.expect_text(page, "#reservations", "room Available")
        looking.expect_text(page, "#decisions", "d/web → n")
        looking.expect_text(page, "#queues", "1 unschedulable")
        yield page
