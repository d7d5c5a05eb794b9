"""The agent as a DRA driver on a machine in memory: its API server, its sources, its socket.

Covers: agents that come and go, claims as a scheduler leaves them, asking as the kubelet asks.
Does not cover: prepared claims as values (``prepared_claims``).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from koordlet.agent import dra_driver, lifecycle
from koordlet.host.fs import root
from koordlet.kubeapi import kinds, objects
from koordlet.model import observed, pod, qos, snapshot
from koordlet.rpc import services
from koordlet.rpc.gen import dra_pb2
from koordlet.scheduler.store import adapter
from koordlet.workloads import gatherer
from tests.kit import agents, moments, prepared_claims, resctrl, trees
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup

PLUGIN = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
CONFIG = """
node: {name: n1}
policies:
  dra_driver: {mode: enforce}
  reserved_cpus: {cpus: '0'}
"""
SAID = observed.Observed(
    kubelet_listed=True,
    node=snapshot.NodeInfo(name=prepared_claims.NODE),
    kubelet=prepared_claims.KUBELET,
)


@dataclass
class Sources:
    """What kubelet and API server say."""

    newest: observed.Observed = field(default_factory=lambda: SAID)

    def take(self) -> observed.Observed:
        """The newest."""
        return self.newest

    def say(self, **fields: Any) -> None:
        """Something new."""
        self.newest = replace(self.newest, **fields)


@dataclass
class Scene:
    """One machine, its API server, and whatever agent is there."""

    site: agents.Site
    folder: Path
    store: adapter.Store
    #: Where the tree with the sets is mounted.
    top: str
    sources: Sources = field(default_factory=Sources)
    driver: dra_driver.DraDriver | None = None
    who: lifecycle.Agent | None = None
    #: Names of claims to the UIDs that the server gave them.
    uids: dict[str, str] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def agent(self, host: root.HostRoot | None = None) -> AsyncIterator[dra_driver.DraDriver]:
        """An agent with its driver; gone at the end as a process is, but for its socket."""
        with self.site.agent(host) as who:
            agents.settle(who, self.site.clock)
            driver = dra_driver.DraDriver(
                who,
                cast("gatherer.Gatherer", self.sources),
                self.store,
                str(self.folder),
            )
            self.who, self.driver = who, driver
            driver.start(self.one_pass)
            try:
                await self.passes()
                yield driver
            finally:
                await driver.stop()

    def one_pass(self) -> bool:
        """One pass of the agent."""
        assert self.who is not None
        self.site.clock.tick()
        return self.who.one_pass(slow=True)

    async def passes(self) -> None:
        """Passes, and what they begin, until the driver has nothing more to do."""
        assert self.driver is not None
        for _ in range(4):
            self.one_pass()
            self.driver.on_pass()
            if self.driver._work is not None:
                await self.driver._work

    async def minute(self) -> None:
        """Passes that the driver's clock sees as more than a minute, where it goes on by itself."""
        for _ in range(3):
            await self.passes()

    async def ask(self, verb: str, *names: str) -> dict[str, str]:
        """The errors of each claim."""
        request = getattr(dra_pb2, f"Node{verb}ResourcesRequest")()
        for name in names:
            request.claims.add(namespace="t", name=name, uid=self.uids.get(name, name))
        answer = getattr(dra_pb2, f"Node{verb}ResourcesResponse")
        method = f"{PLUGIN}/Node{verb}Resources"
        path = str(self.folder / f"{prepared_claims.DRIVER}-reg.sock")
        done = answer.FromString(await services.ask(path, method, request, 30.0))
        return {name: done.claims[self.uids.get(name, name)].error for name in names}

    def sets(self) -> dict[str, str]:
        """The cpusets of the groups."""
        return {
            path: self.site.host.text(self.site.host.at(f"{self.top}/{path}/cpuset.cpus")).strip()
            for path in ("ls", "p", "p/" + "a" * 64)
        }

    def holds(self) -> dict[str, str]:
        """Holders of exclusive CPUs."""
        assert self.who is not None
        view = self.who.publisher.view
        assert view is not None
        return {row.holder: str(row.cpus) for row in view.plan.ledger.claims if row.uid}


def using(*claims: str) -> pod.Pod:
    """A running pod whose container uses claims."""
    box = pod.Container(name="main", id="a" * 64, claims=claims)
    return moments.workload(
        "p",
        kube_qos=qos.KubeQos.BURSTABLE,
        group=None,
        containers=(box,),
        requests={"cpu": 2000},
    )


LS = moments.workload("ls", kube_qos=qos.KubeQos.BURSTABLE, group=None)


@contextlib.asynccontextmanager
async def claim_node(
    ram: Path, *, rdt: str | None = None, version: Cgroup = "v1"
) -> AsyncIterator[Scene]:
    """A machine of two nodes with four CPUs each, of which one is reserved."""
    host = Machine("0-7", {0: "0-3", 1: "4-7"}, cgroup=version, threads=1, rdt=rdt)
    top = trees.top(version)
    if rdt is not None:
        host.mount("resctrl", host.at(resctrl.PLACE), "resctrl", "")
    for path in ("ls", "p", "p/" + "a" * 64):
        above = f"{top}/{path}".rpartition("/")[0]
        if version == "v2":
            host.write(host.at(f"{above}/cgroup.subtree_control"), b"+cpuset")
        host.mkdir(host.at(f"{top}/{path}"))
        for name in ("cpuset.cpus", "cpuset.mems") if version == "v1" else ():
            text = host.read(host.at(f"{above}/{name}"))
            host.write(host.at(f"{top}/{path}/{name}"), text)
        if version == "v1" or path != "p":
            host.spawn(f"{top}/{path}")

    store = adapter.Store(ram / "store.db")
    await store.open()
    sources = Sources()
    config = CONFIG if rdt is None else f"{CONFIG}  resctrl: {{mode: enforce}}\n"
    site = agents.Site(
        host, ram / "state", config=config, sources=cast("gatherer.Gatherer", sources)
    )
    try:
        yield Scene(site, ram, store, top, sources)
    finally:
        await store.close()


async def make(scene: Scene, body: dict[str, Any]) -> None:
    """A claim with its status, under its own UID."""
    made = await scene.store.create(kinds.RESOURCE_CLAIMS, {**body, "status": {}})
    ref = objects.ref(kinds.RESOURCE_CLAIMS, made)
    await scene.store.patch(ref, objects.Merge({"status": body["status"]}), subresource="status")
    scene.uids[ref.name] = objects.text(made, "uid")
