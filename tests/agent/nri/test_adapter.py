"""The agent and its runtime: starting, conditions, what is remembered, what is renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from koordlet.agent import lifecycle
from koordlet.agent.nri import adapter
from koordlet.config import cluster_sections
from koordlet.model import pod
from koordlet.workloads.nri import messages, trust
from koordlet.workloads.nri.messages import NriEvent
from tests.kit import agents, deadline, nri, sites

POD = messages.NriPod(
    id="s", uid="u1", namespace="d", name="new", cgroup_parent="/kubepods/besteffort/podu1"
)


@dataclass
class Life:
    """An agent that attends to a runtime."""

    site: agents.Site
    attached: adapter.NriAdapter
    runtime: nri.Runtime
    ahead: list[float]

    async def peer(self, pods: tuple[messages.NriPod, ...] = ()) -> nri.Peer:
        """The runtime's end of the connection."""

        def introduce() -> nri.Peer:
            peer = self.runtime.accept()
            peer.introduce(pods)
            return peer

        return await asyncio.to_thread(introduce)


def live(ram: Path, act: Callable[[Life], Awaitable[None]], *, alone: bool = True) -> None:
    """Attend while ``act`` runs."""
    site = sites.workloads("v1", ram)
    ahead = [0.0]

    async def run() -> None:
        (ram / "nri.sock").unlink(missing_ok=True)
        with site.agent() as who, nri.runtime(ram / "nri.sock") as runtime:
            agents.settle(who, site.clock)
            section = cluster_sections.Nri(mode="on", socket=str(ram / "nri.sock"))
            attached = adapter.NriAdapter(who, section, alone=alone, clock=lambda: ahead[0])
            life = Life(site, attached, runtime, ahead)
            try:
                await act(life)
            finally:
                attached.close()
                await attached.stop()

    asyncio.run(run())


def test_from_start_to_stop(ram: Path) -> None:
    """The start waits until it is known what is there; then it answers."""

    async def act(life: Life) -> None:
        peering = asyncio.ensure_future(life.peer((POD,)))
        await life.attached.start(lambda: False)
        peer = await peering
        assert "u1" in life.attached.handler.agent.tick.announcements.pods
        life.attached.open()
        answer = await asyncio.to_thread(peer.happens, NriEvent.RUN_POD_SANDBOX, POD)
        assert answer.code == 0
        assert life.attached.counted()["connected"] == 1
        assert life.attached.counted()["events"] == 1

    live(ram, act)


def test_a_runtime_that_is_lost(ram: Path) -> None:
    """It is said after a while, with the reason, and no more once it is back."""

    async def act(life: Life) -> None:
        await life.attached.start(lambda: False)
        life.ahead[0] += 10.0
        life.attached.on_pass()
        assert life.attached.conditions() == ()
        life.ahead[0] += 10.0
        (lost,) = life.attached.conditions()
        assert lost.type == "ContainerRuntimeLost"
        await life.peer()

        def connected() -> bool:
            return life.attached.plugin.status.connected

        await asyncio.to_thread(deadline.until, connected, "the connection is known here")
        life.attached.on_pass()
        assert life.attached.conditions() == ()

    live(ram, act, alone=False)


def test_what_a_restart_remembers(ram: Path) -> None:
    """That we ceased to adjust; the operator's reset is remembered, too."""

    async def ceased(life: Life) -> None:
        life.attached.handler.trust.state = trust.StartRecord(counted={"u/c": 1.0}, ceased=True)
        life.attached.on_pass()

    async def reset(life: Life) -> None:
        assert [each.type for each in life.attached.conditions()] == ["ContainerAdjustmentCeased"]
        life.attached.reset()
        assert life.attached.conditions() == ()

    async def fresh(life: Life) -> None:
        assert life.attached.conditions() == ()

    for act in (ceased, reset, fresh):
        live(ram, act)


def test_containers_that_the_runtime_did_not_tell_of(ram: Path) -> None:
    """The connection is renewed once they have been known to others for a while."""

    async def act(life: Life) -> None:
        await life.attached.start(lambda: False)
        first = await life.peer()
        await asyncio.to_thread(
            deadline.until, lambda: life.attached.plugin.status.connected, "it is connected"
        )
        box = pod.Container(name="main", id="unknown", runtime="containerd", running=True)
        seen = life.attached.handler.agent.tick.observation
        seen._placed = ((), (replace(seen.pods[0], containers=(box,)),))
        for seconds in (100.0, 5.0, 6.0):
            life.ahead[0] += seconds
            life.attached.on_pass()
        assert await asyncio.to_thread(_read_until_hung_up, first) == []
        await life.peer()

    live(ram, act, alone=False)


def _read_until_hung_up(peer: nri.Peer) -> list[object]:
    """Nothing, once the plugin has hung up."""
    with pytest.raises(EOFError):
        peer.next(1)
    return []


def test_an_agent_publishes_its_runtime(ram: Path) -> None:
    """Conditions and counters of the adapter that an agent is wired to are in its view."""
    site, ahead = sites.workloads("v1", ram), [0.0]
    config = cluster_sections.Nri(mode="on", socket=str(ram / "none.sock"))

    def attach(agent: lifecycle.Agent) -> adapter.NriAdapter:
        return adapter.NriAdapter(agent, config, alone=False, clock=lambda: ahead[0])

    wired = lifecycle.Wiring(runtime=attach)
    agent = lifecycle.Agent(site.line(), site.paths, enforce=True, wired=wired)
    try:
        ahead[0] = 60.0
        agent.one_pass(slow=True)
        view = agent.publisher.view
    finally:
        assert agent.runtime is not None
        asyncio.run(agent.runtime.stop())
        agent.close()

    assert view is not None
    assert "ContainerRuntimeLost" in {each.type for each in view.plan.conditions}
    assert view.runtime["connected"] == 0
