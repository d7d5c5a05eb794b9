"""The API server goes away and comes back, under real agents and a real scheduler.

Covers: processes over HTTP; what they ask on its return, and that everything is up to date again.
Does not cover: 5 000 agents at once (simulated: ``tests.report.test_writing``).

Reports are a minute apart, so this is for the soak; ``tests.cluster.test_faults`` has a real API
server go away for seconds, and forget its history.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.store import adapter
from tests.conformance import real
from tests.kit import deadline
from tests.kit.apiserver import apart

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

NODES = ("n1", "n2")
#: Seconds. The short one is longer than the attempts of the first half a minute are apart.
_AWAY, _LONG = 12.0, 600.0
_WRITTEN = (kinds.NODE_METRICS, kinds.Kind(
    "topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", "NodeResourceTopology",
    namespaced=False,
))  # fmt: skip


async def _touch(file: Path, *, compact: bool) -> dict[str, str]:
    """What happened while nobody could hear of it: a pod for each node, and history forgotten."""
    store = adapter.Store(file)
    await store.open()
    try:
        with contextlib.suppress(refusals.AlreadyExists):
            # Of the scheduler's lease.
            await store.create(kinds.NAMESPACES, {"metadata": {"name": "kube-system"}})
        for node in NODES:
            with contextlib.suppress(refusals.AlreadyExists):
                # The first report comes after half of what it is the mean of.
                policy = {"metricCollectPolicy": {"aggregateDurationSeconds": 60}}
                metric = {"metadata": {"name": node}, "spec": policy}
                await store.create(kinds.NODE_METRICS, metric)
            try:
                await store.create(kinds.NODES, {"metadata": {"name": node}})
            except refusals.AlreadyExists:
                await store.patch(
                    objects.Ref(kinds.NODES, node),
                    objects.Merge({"metadata": {"labels": {"seen": "after"}}}),
                )
        if compact:
            listed = await objects.collect(store.list(kinds.NODES))
            await store.compact(listed.revision)
        return {
            f"{kind.plural}/{node}": await _revision(store, objects.Ref(kind, node))
            for kind in _WRITTEN
            for node in NODES
        }
    finally:
        await store.close()


async def _revision(store: adapter.Store, ref: objects.Ref) -> str:
    try:
        return objects.revision(await store.get(ref))
    except refusals.NotFound:
        return ""


def _started(log: Path, *words: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "koordlet", *words], stdout=output, stderr=output
        )


@dataclass
class Processes:
    """An agent for each node, which observes and writes its objects, and a scheduler."""

    folder: Path
    config: Path
    running: list[subprocess.Popen[bytes]]
    logs: list[Path]

    def schedule(self) -> None:
        """Start the scheduler, or start it again where it has ended, as a kubelet does it."""
        if len(self.running) > len(NODES):
            if self.running[-1].poll() is None:
                return
            self.running.pop()
        words = ["scheduler", "--kubeconfig", str(self.config), "--http", "127.0.0.1:0"]
        words += ["--state-dir", str(self.folder / "scheduler")]
        self.running.append(_started(self.logs[-1], *words))


@contextlib.contextmanager
def _processes(folder: Path, config: Path) -> Iterator[Processes]:
    """All of them, ended in the end."""
    running: list[subprocess.Popen[bytes]] = []
    logs: list[Path] = []
    for node in NODES:
        sections: dict[str, Any] = {
            "apiVersion": "koordlet.io/v1",
            "kind": "Config",
            "node": {"name": node},
            "kubelet": {"mode": "off"},
            "kube": {"kubeconfig": str(config)},
            "report": {"http": {"enabled": False}, "objects": {"mode": "on"}},
        }
        file = folder / f"{node}.yaml"
        file.write_text(yaml.safe_dump(sections))
        logs.append(folder / f"{node}.log")
        words = ["run", "--observe", "--config", str(file), "--state-dir", str(folder / node)]
        running.append(_started(logs[-1], *words))
    it = Processes(folder, config, running, [*logs, folder / "scheduler.log"])
    it.schedule()
    try:
        yield it
        for process in running:
            process.terminate()
        assert [0] * len(NODES) == [agent.wait(60) for agent in running[: len(NODES)]]
        # A scheduler that lost its lease has ended before, so that another one may decide.
        running[-1].wait(60)
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait(60)


def _patched(requests: list[apart.Request]) -> set[str]:
    """Which of the written objects were patched or made."""
    return {
        f"{kind.plural}/{node}"
        for request, kind, node in itertools.product(requests, _WRITTEN, NODES)
        if request.method in {"PATCH", "POST"} and f"/{kind.plural}/{node}" in request.path
    }


def _watched(requests: list[apart.Request]) -> Counter[str]:
    return Counter(request.path for request in requests if "watch=true" in request.query)


def _lists(requests: list[apart.Request]) -> list[apart.Request]:
    """What agents listed."""
    return [request for request in requests if request.agent == "koordlet" and request.lists]


def _tell(requests: list[apart.Request], back: float) -> None:
    """For people: who asked what on its return (``pytest -s``)."""
    asked = Counter(
        (request.agent, request.method, request.path, "list" * request.lists)
        for request in requests
    )
    seconds = Counter(int(request.at - back) for request in requests)
    lines = [f"{many} {' '.join(key)}" for key, many in sorted(asked.items())]
    lines.append(f"in each second after the return: {dict(sorted(seconds.items()))}")
    sys.stdout.write("\n".join(lines) + "\n")


@pytest.mark.parametrize("seconds", [_AWAY, _LONG])
def test_one_list_for_each_kind(ram: Path, seconds: float) -> None:
    """Its history is lost meanwhile, too: each process lists each kind once, and all is written.

    After ten minutes all attempts are as far apart as they ever are.
    """
    (port,) = real.free_ports(1)
    api = apart.Apart(ram / "api", f"127.0.0.1:{port}")
    asyncio.run(_touch(api.store, compact=False))
    api.start()
    try:
        with _processes(ram, api.kubeconfig()) as processes:
            metrics = {f"{kinds.NODE_METRICS.plural}/{node}" for node in NODES}
            deadline.until(
                lambda: metrics <= _patched(api.seen()), "NodeMetrics are written", seconds=120
            )
            began = _watched(api.seen())
            api.kill()
            asyncio.run(_touch(api.store, compact=True))
            end = time.monotonic() + seconds
            deadline.until(lambda: time.monotonic() > end, "the outage", seconds=2 * seconds)
            # One that lost its lease meanwhile has ended.
            processes.schedule()
            back = time.time()
            api.start()
            deadline.until(
                lambda: metrics <= _patched(api.seen(back)), "NodeMetrics again", seconds=150
            )
            deadline.until(
                lambda: _watched(api.seen(back)).keys() >= began.keys(), "all is watched again"
            )
            deadline.until(
                lambda: any(
                    kinds.PODS.plural in request.path for request in _lists(api.seen(back))
                ),
                "history was lost: there are lists",
            )
            _tell(api.seen(back), back)
            agents = _lists(api.seen(back))
            scheduler = [
                request
                for request in api.seen(back)
                if request.agent != "koordlet" and request.lists
            ]
            shown = "\n".join(log.read_text()[-1500:] for log in processes.logs)
    finally:
        api.kill()

    lists = Counter((request.path, request.query) for request in agents)
    assert max(Counter(request.path for request in scheduler).values(), default=0) <= 1, shown
    # A selector names the node, except of what concerns both.
    assert max(lists.values(), default=0) <= len(NODES), lists
    assert all(
        many == 1 for (_, query), many in lists.items() if any(node in query for node in NODES)
    ), lists
