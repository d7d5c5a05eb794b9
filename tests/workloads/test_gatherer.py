"""Sources are asked in the background; each costs only itself; a tick takes the newest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet import log
from koordlet.config import file_source
from koordlet.host.recording import directory
from koordlet.kube import adapter as kube
from koordlet.kube import credentials
from koordlet.kubeapi import kinds, objects
from koordlet.model import observed, pod
from koordlet.scheduler.store import adapter
from koordlet.workloads import gatherer as source_gatherer
from koordlet.workloads import manifest_directory, source
from koordlet.workloads.kubelet import client
from koordlet.workloads.kubelet import sources as kubelet_sources
from tests.kit import clocks, deadline, node_slos
from tests.kit import pods as examples
from tests.kit.kubelet import server
from tests.workloads import test_nodes, test_sloconfig

NODE = {"apiVersion": "v1", "kind": "Node", **test_nodes.OBJECT}


class Watched:
    """A gatherer that can be waited for."""

    def __init__(self, clock: clocks.Clock, **sources: Any) -> None:
        self._new = asyncio.Event()
        #: How many there have been.
        self.values = 0
        self.all = source_gatherer.Gatherer(clock, told=self._count, chance=lambda: 0.0, **sources)

    def _count(self) -> None:
        self.values += 1
        self._new.set()

    async def until(self, holds: Callable[[observed.Observed], bool]) -> observed.Observed:
        """Wait until what was gathered is so."""
        async with asyncio.timeout(20):
            while not holds(self.all.take()):
                self._new.clear()
                await self._new.wait()
        return self.all.take()


def asked(kubelet: server.Kubelet, period: float = 0.02) -> kubelet_sources.KubeletSources:
    """The endpoints on the read-only port, asked often."""
    where = client.KubeletEndpoint(host="127.0.0.1", port=kubelet.port, secure=False, seconds=5.0)
    return kubelet_sources.endpoints(where, period=period, max_age=60.0, statistics=True)


@asynccontextmanager
async def opened() -> AsyncGenerator[tuple[server.Kubelet, Watched, clocks.Clock]]:
    """A kubelet, and what gathers from it."""
    kubelet, clock = server.Kubelet(), clocks.Clock(100.0)
    await kubelet.start()
    gatherer = Watched(clock, kubelet=asked(kubelet))
    try:
        await gatherer.all.start(20.0)
        yield kubelet, gatherer, clock
    finally:
        await gatherer.all.stop()
        await kubelet.stop()


def fresh(now: observed.Observed) -> int:
    """How many pods are not stale."""
    return sum(not listed.stale for listed in now.pods)


async def test_the_first_answers_are_there_after_the_start() -> None:
    """Pods and statistics, each source well."""
    async with opened() as (_, gatherer, __):
        observation = gatherer.all.take()

        assert len(observation.pods) == 5
        assert observation.kubelet is not None
        assert observation.kubelet.summary is not None
        assert [status.name for status in observation.sources if status.ok] == [
            "kubelet",
            "kubelet stats",
        ]
        assert {path for path, _ in gatherer.all.took()} == {"/pods", "/stats/summary"}


async def test_a_kubelet_that_fails_keeps_its_last_pods_until_they_are_stale() -> None:
    """They stay after that, marked; it is named while it fails; what comes back counts at once."""
    async with opened() as (kubelet, gatherer, clock):
        kubelet.manner = server.Manner.HTML
        failed = await gatherer.until(lambda now: not now.sources[0].ok)

        assert [each.stale for each in failed.pods] == [False] * 5
        assert "text/html" in failed.sources[0].problem
        clock.now += 61
        aged = gatherer.all.take()
        assert [each.stale for each in aged.pods] == [True] * 5
        kubelet.manner = server.Manner.WELL
        well = await gatherer.until(lambda now: now.sources[0].ok)
        assert [each.stale for each in well.pods] == [False] * 5


async def test_a_broken_pod_costs_itself_and_is_said() -> None:
    """Also statistics that lie cost only themselves."""
    async with opened() as (kubelet, gatherer, _):
        kubelet.bodies["/pods"] = json.dumps({"items": [{"metadata": 3}, examples.pod()]}).encode()
        kubelet.bodies["/stats/summary"] = b"[1, 2"
        newest = await gatherer.until(lambda now: fresh(now) == 1 and not now.sources[1].ok)

        assert newest.sources[0].ok
        assert "items[0]" in newest.problems[0]


async def test_what_is_wrong_with_a_pod_is_one_event(capsys: pytest.CaptureFixture[str]) -> None:
    """It names the pod and the annotation, once, however often the kubelet says it."""
    key = "scheduling.koordinator.sh/resource-status"
    log.configure("warning", "json")
    async with opened() as (kubelet, gatherer, _):
        ill, well = examples.annotated(key, "{"), examples.pod(2)
        kubelet.bodies["/pods"] = json.dumps({"items": [ill]}).encode()
        await gatherer.until(lambda now: fresh(now) == 1)
        kubelet.bodies["/pods"] = json.dumps({"items": [ill, well]}).encode()
        await gatherer.until(lambda now: fresh(now) == 2)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines() if "{" in line]
    (event,) = [entry for entry in events if entry["event"] == "pod.problem"]

    assert key in event["detail"]
    assert event["pod"].count("/") == 1


async def test_a_checkpoint_that_is_half_written_keeps_the_last_one(tmp_path: Path) -> None:
    """A missing one holds nothing."""
    cpu, memory = kubelet_sources.checkpoints(
        directory.DirHost(str(tmp_path)), "/kubelet", max_age=9.0
    )
    await cpu.poll()
    await memory.poll()

    assert cpu.value is not None
    assert cpu.value.entries == {}
    folder = tmp_path / "kubelet"
    folder.mkdir()
    whole = (server.FIXTURES / "cpu_manager_state").read_bytes()
    (folder / "cpu_manager_state").write_bytes(whole)
    await cpu.poll()
    (folder / "cpu_manager_state").write_bytes(whole[:50])
    with pytest.raises(source.Unusable, match="cpu_manager_state"):
        await cpu.poll()
    assert cpu.value.policy == "static"


async def test_the_api_server_brings_pods_node_and_strategies(tmp_path: Path) -> None:
    """Of this node only; a NodeSLO wins over the map; what changes comes by itself."""
    store = adapter.Store(tmp_path / "objects.db")
    await store.open()
    await store.create(kinds.NODES, NODE)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
        "data": {"resource-threshold-config": json.dumps(test_sloconfig.THRESHOLD)},
    }
    await store.create(kinds.CONFIG_MAPS, config)
    for number, node in ((1, "n1"), (2, "n2")):
        body = {"apiVersion": "v1", "kind": "Pod", **examples.pod(number, spec__nodeName=node)}
        body["metadata"].pop("resourceVersion")
        await store.create(kinds.PODS, body)
    gatherer = Watched(clocks.Clock(100.0), store=store, node="n1")
    try:
        await gatherer.all.start(20.0)
        first = gatherer.all.take()

        assert [workload.name for workload in first.pods] == ["web-1"]
        assert first.node is not None
        assert first.node.capacity["cpu"] == 4000
        assert first.slo is not None
        assert first.slo.source == "slo-controller-config"
        api = "slo.koordinator.sh/v1alpha1"
        body = {**node_slos.OBJECT, "metadata": {"name": "n1"}}
        await store.create(kinds.NODE_SLOS, {"apiVersion": api, "kind": "NodeSLO", **body})
        slo = await gatherer.until(lambda now: now.slo is not None and now.slo.source == "NodeSLO")
        applications = [workload for workload in slo.pods if workload.source == "host application"]
        assert [workload.match for workload in applications] == [
            "cgroup=host-latency-sensitive/a",
            "cgroup=kubepods/besteffort/b",
        ]
    finally:
        await gatherer.all.stop()


async def test_a_pod_is_there_between_its_start_and_the_kubelet_s_next_answer(
    tmp_path: Path,
) -> None:
    """The API server says first that it runs; it is stale once a later answer lacks it.

    Before its first answer the kubelet has listed nothing; what it listed counts while it is away.
    """

    async def use(kubelet: server.Kubelet) -> None:
        store = adapter.Store(tmp_path / "objects.db")
        await store.open()
        body = {"apiVersion": "v1", "kind": "Pod", **examples.pod(1, spec__nodeName="n1")}
        body["metadata"].pop("resourceVersion")
        body["status"] = {"phase": "Pending"}
        await store.create(kinds.PODS, body)
        kubelet.bodies["/pods"] = b'{"kind":"PodList","items":[]}'
        clock = clocks.Clock(100.0)
        kubelet.manner = server.Manner.HTML
        gatherer = Watched(clock, kubelet=asked(kubelet), store=store, node="n1")
        try:
            await gatherer.all.start(20.0)
            first = gatherer.all.take()
            assert ([each.name for each in first.pods], first.kubelet_listed) == (["web-1"], False)
            kubelet.manner = server.Manner.WELL
            await gatherer.until(lambda now: now.kubelet_listed)
            kubelet.manner = server.Manner.HTML
            await gatherer.until(lambda now: not now.sources[0].ok)
            clock.now += 1
            ref = objects.Ref(kinds.PODS, "web-1", body["metadata"]["namespace"])
            await store.patch(
                ref, objects.Merge({"status": {"phase": "Running"}}), subresource="status"
            )
            newest = await gatherer.until(
                lambda now: [each.phase for each in now.pods] != [pod.Phase.PENDING]
            )
            assert [each.phase for each in newest.pods] == [pod.Phase.RUNNING]
            assert newest.kubelet_listed
            clock.now += 1
            kubelet.manner = server.Manner.WELL
            await gatherer.until(lambda now: [each.stale for each in now.pods] == [True])
        finally:
            await gatherer.all.stop()

    kubelet = server.Kubelet()
    await kubelet.start()
    try:
        await use(kubelet)
    finally:
        await kubelet.stop()


async def test_a_mistake_in_the_map_holds_what_it_said_before(tmp_path: Path) -> None:
    """A torn key limits as before, and is named; a map that goes takes everything along."""
    store = adapter.Store(tmp_path / "objects.db")
    await store.open()
    key, section = "resource-threshold-config", {"cpuSuppressThresholdPercent": 40}
    whole = json.dumps({"clusterStrategy": {"enable": True, **section}})
    meta = {"name": "slo-controller-config", "namespace": "koordinator-system"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: whole}}
    ref = objects.Ref(kinds.CONFIG_MAPS, meta["name"], meta["namespace"])
    await store.create(kinds.CONFIG_MAPS, config)
    gatherer = Watched(clocks.Clock(100.0), store=store, node="n1")
    try:
        await gatherer.all.start(20.0)
        good = gatherer.all.take().slo
        await store.patch(ref, objects.Merge({"data": {key: whole[:-1]}}))
        torn = (await gatherer.until(lambda now: bool(now.problems))).slo
        assert good is not None
        assert torn is not None
        assert torn.threshold.cpu_suppress_threshold_percent == 40
        assert good.threshold == torn.threshold
        assert [f"slo-controller-config: {key}"] == [
            ": ".join(problem.split(": ")[:2]) for problem in torn.problems
        ]
        await store.delete(ref)
        await gatherer.until(lambda now: now.slo is None)
    finally:
        await gatherer.all.stop()


async def test_a_store_that_is_gone_costs_only_itself(tmp_path: Path) -> None:
    """The kubelet's pods are there after the patience of the start."""
    kubelet = server.Kubelet()
    await kubelet.start()
    store = adapter.Store(tmp_path / "objects.db")
    gatherer = Watched(
        clocks.Clock(100.0), kubelet=asked(kubelet, period=1.0), store=store, node="n1"
    )
    try:
        await gatherer.all.start(0.5)
        observation = await gatherer.until(lambda now: bool(now.pods))

        assert {pod.Phase.RUNNING} == {workload.phase for workload in observation.pods}
        assert {each.name for each in observation.sources if each.ok} == {
            "kubelet",
            "kubelet stats",
        }
    finally:
        await gatherer.all.stop()
        await kubelet.stop()


def test_why_the_api_server_does_not_answer_is_one_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All kinds fail for one reason, so it is said once, with the names of those that do."""
    log.configure("info", "json")

    async def use() -> None:
        source = credentials.CredentialSource(kubeconfig=str(tmp_path / "nowhere"))
        store = kube.KubeStore(credentials.Credentials(source))
        gatherer = Watched(clocks.Clock(100.0), store=store, node="n1")
        try:
            await gatherer.all.start(0.0)
            await deadline.comes(
                lambda: all("no usable" in status.problem for status in gatherer.all.take().sources)
            )
        finally:
            await gatherer.all.stop()

    asyncio.run(use())
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (event,) = [entry for entry in events if entry["event"] == "source.failed"]
    assert event["source"].startswith("cluster pods")
    assert "there is no such file" in event["detail"]


async def test_manifests_are_of_this_machine(tmp_path: Path) -> None:
    """Workloads in files make a machine no part of a cluster; a broken file is said."""
    text = (
        '{"kind": "Pod", "metadata":'
        ' {"name": "web", "annotations": {"koordlet.io/match": "unit=a.scope"}}}'
    )
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text("{")
    declared = manifest_directory.Directory(
        str(tmp_path), read=file_source.read, identity=file_source.identity
    )
    watched = Watched(clocks.Clock(100.0), declared=declared)
    await watched.all.start(5)
    try:
        observation = await watched.until(lambda now: bool(now.pods))
    finally:
        await watched.all.stop()
    assert watched.all.alone
    assert [workload.key for workload in observation.pods] == ["default/web"]
    assert [(status.name, status.ok, status.local) for status in observation.sources] == [
        ("manifests", True, True)
    ]
    assert any("b.json" in why for why in observation.problems)
