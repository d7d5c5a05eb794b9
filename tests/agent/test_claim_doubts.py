"""Prepared claims of which the world has changed meanwhile: pods, objects, offers, sockets.

Covers: what is compared with the API server and when, claims made anew, the kubelet that starts
again while something else is offered. Does not cover: the disk (``test_claim_record``), which
claims a comparison keeps (``tests.workloads.test_claim_comparison``).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import kubelet, observed, pod
from koordlet.policy.cpu import dra_driver
from koordlet.rpc import dra_plugin
from koordlet.scheduler.store import adapter
from tests.kit import deadline
from tests.kit.claim_scene import LS, Scene, claim_node, make, using
from tests.kit.prepared_claims import result, status

STATIC = kubelet.Kubelet(configuration=kubelet.Configuration(cpu_manager_policy="static"))


def waiting(*claims: str) -> pod.Pod:
    """A pod that does not run yet: no server's answer holds its claims."""
    return replace(using(*claims), phase=pod.Phase.PENDING)


async def prepared(scene: Scene, user: pod.Pod) -> None:
    """The claim of a pod is made, and prepared."""
    scene.sources.say(pods=(LS, user))
    await make(scene, status("a", result("numa-1", cpu="2")))
    assert await scene.ask("Prepare", "a") == {"a": ""}


class Server:
    """The API server, which may be away, or take its time."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.away = False
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def get(self, ref: objects.Ref) -> objects.Object:
        """The object, as it was when it was asked for."""
        if self.away:
            raise refusals.Unavailable("no answer")
        try:
            body: objects.Object | refusals.NotFound = await self._store.get(ref)
        except refusals.NotFound as error:
            body = error
        self.asked.set()
        await self.may_answer.wait()
        if isinstance(body, refusals.NotFound):
            raise body
        return body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def free(scene: Scene, name: str) -> None:
    """Nobody uses the claim any more, as the claims' controller says."""
    ref = objects.Ref(kinds.RESOURCE_CLAIMS, name, "t")
    nobody = objects.Merge({"status": {"reservedFor": None}})
    await scene.store.patch(ref, nobody, subresource="status")


async def test_a_claim_that_no_pod_uses_is_compared_each_minute(ram: Path) -> None:
    """An unprepared claim came back with a record: it ends, but not while the server is away."""
    async with claim_node(ram) as scene:
        server = Server(scene.store)
        scene.store = cast("adapter.Store", server)
        async with scene.agent() as driver:
            driver._clock = itertools.count(driver._clock(), 10.0).__next__
            await prepared(scene, waiting("a"))
            await free(scene, "a")
            await scene.minute()
            assert scene.holds() == {"claim/t/a": "4-5"}
            scene.sources.say(pods=(LS,))
            server.away = True
            await scene.minute()
            assert scene.holds() == {"claim/t/a": "4-5"}
            server.away = False
            await scene.minute()
            assert scene.holds() == {}


async def test_a_server_that_is_silent_holds_up_nothing(ram: Path) -> None:
    """While a comparison waits, a claim is unprepared: the late answer does not bring it back."""
    async with claim_node(ram) as scene:
        server = Server(scene.store)
        scene.store = cast("adapter.Store", server)
        async with scene.agent() as driver:
            await prepared(scene, using("a"))
            server.asked.clear()
            server.may_answer.clear()
            driver.registered("")
            driver.on_pass()
            await server.asked.wait()
            async with asyncio.timeout(10.0):
                assert await scene.ask("Unprepare", "a") == {"a": ""}
            server.may_answer.set()
            await scene.passes()
            assert scene.holds() == {}


async def test_a_claim_that_was_made_anew_has_nothing_of_the_one_before(ram: Path) -> None:
    """The same name, another UID, while the kubelet has not unprepared the first."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        await prepared(scene, waiting("a"))
        first = dra_plugin.ClaimRef("t", "a", scene.uids["a"])
        await scene.store.delete(objects.Ref(kinds.RESOURCE_CLAIMS, "a", "t"))
        await make(scene, status("a", result("numa-0", cpu="1")))
        assert await scene.ask("Prepare", "a") == {"a": ""}
        assert scene.holds() == {"claim/t/a": "1"}
        assert scene.sets()["p/" + "a" * 64] == "1"
        await driver.unprepare(first)
        assert scene.holds() == {"claim/t/a": "1"}


async def test_the_end_of_one_claim_is_no_word_on_the_next_of_that_name(ram: Path) -> None:
    """Made anew, its pod runs, no record has it: held again, unless it is unprepared itself."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        await prepared(scene, waiting("a"))
        first = dra_plugin.ClaimRef("t", "a", scene.uids["a"])
        await scene.store.delete(objects.Ref(kinds.RESOURCE_CLAIMS, "a", "t"))
        await make(scene, status("a", result("numa-0", cpu="1")))
        scene.sources.say(pods=(LS, using("a")))
        driver.registered("")
        await driver.unprepare(first)
        await scene.passes()
        assert scene.holds() == {"claim/t/a": "1"}
        driver.registered("")
        await driver.unprepare(dra_plugin.ClaimRef("t", "a", scene.uids["a"]))
        await scene.passes()
        assert scene.holds() == {}
        driver.registered("")
        await scene.passes()
        assert scene.holds() == {"claim/t/a": "1"}


async def test_no_claim_is_given_up_before_the_kubelet_has_listed_its_pods(ram: Path) -> None:
    """An agent starts while the kubelet is away; a pod that was deleted by force still runs."""
    async with claim_node(ram) as scene:
        scene.sources.say(pods=(LS, using("a")))
        await make(scene, status("a", result("numa-1", cpu="2")))
        async with scene.agent():
            assert await scene.ask("Prepare", "a") == {"a": ""}
        await scene.store.delete(objects.Ref(kinds.RESOURCE_CLAIMS, "a", "t"))
        kubelet_said, scene.sources.newest = scene.sources.newest, observed.NOTHING
        async with scene.agent() as driver:
            driver._clock = itertools.count(driver._clock(), 10.0).__next__
            await scene.minute()
            assert scene.holds() == {"claim/t/a": "4-5"}
            # The API server's list alone.
            scene.sources.say(pods=(LS,), node=kubelet_said.node)
            await scene.minute()
            assert scene.holds() == {"claim/t/a": "4-5"}
            scene.sources.newest = kubelet_said
            await scene.minute()
            assert scene.holds() == {"claim/t/a": "4-5"}
            scene.sources.say(pods=(LS,))
            await scene.minute()
            assert scene.holds() == {}


async def test_what_is_prepared_stays_so_whatever_is_offered_now(ram: Path) -> None:
    """The kubelet starts again and asks: under a static policy, then with other devices."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        await prepared(scene, waiting("a"))
        before = scene.sources.newest.kubelet
        scene.sources.say(kubelet=STATIC)
        await scene.passes()
        assert await scene.ask("Prepare", "a") == {"a": ""}
        scene.sources.say(kubelet=before)
        assert scene.who is not None
        by_core = dra_driver.Settings(group_by=dra_driver.CORE)
        scene.who.tick.override({dra_driver.STEM: by_core})
        await scene.passes()
        assert await scene.ask("Prepare", "a") == {"a": ""}
        assert driver.counted()["prepared"] == 1
        assert scene.holds() == {"claim/t/a": "4-5"}


async def test_a_new_name_is_offered_once_the_claims_of_the_old_one_are_gone(ram: Path) -> None:
    """The kubelet has the old driver until then: slices of the new one would strand pods."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        await prepared(scene, waiting("a"))
        driver.registered("")
        assert driver.counted()["registration"] == 1
        assert scene.who is not None
        scene.who.tick.override({dra_driver.STEM: dra_driver.Settings(name="other.cpu")})
        await scene.passes()
        assert driver.counted()["registration"] == 0
        await scene.ask("Unprepare", "a")
        await scene.passes()
        driver.registered("")
        assert driver.counted()["registration"] == 2
        assert [path.name for path in scene.folder.glob("*.sock")] == ["other.cpu-reg.sock"]


async def test_a_container_has_the_cache_of_one_claim(ram: Path) -> None:
    """A thread is in one control group: the second claim is refused, not prepared in vain."""
    async with claim_node(ram, rdt="intel") as scene, scene.agent() as driver:
        scene.sources.say(pods=(LS, waiting("a", "b")))
        for name in ("a", "b"):
            cache = result("cache-1", "cache", ways="2", groups="1")
            await make(scene, status(name, result("numa-1", cpu="1"), cache))
        assert await scene.ask("Prepare", "a") == {"a": ""}
        answers = await scene.ask("Prepare", "b")
        assert "container main of t/p has the cache of claim t/a" in answers["b"]
        assert (scene.holds(), driver.counted()["claims"]) == ({"claim/t/a": "4"}, 1)


async def test_an_agent_that_only_observes_prepares_nothing(ram: Path) -> None:
    """It could hold no container to a claim: no new ones, no slices; the old ones can end."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        scene.sources.say(pods=(LS, waiting("a", "b")))
        await make(scene, status("a", result("numa-1", cpu="2")))
        await make(scene, status("b", result("numa-1", cpu="1")))
        await scene.ask("Prepare", "a")
        driver.registered("")
        assert scene.who is not None
        scene.who.switch(enforce=False)
        await scene.passes()
        answers = await scene.ask("Prepare", "b")
        assert "this node offers no devices now" in answers["b"]
        assert (driver.counted()["claims"], driver.counted()["registration"]) == (1, 0)
        assert await scene.ask("Unprepare", "a") == {"a": ""}
        await scene.passes()
        assert not list(scene.folder.glob("*.sock"))


async def test_an_allocation_that_grew_and_is_refused_costs_nothing(ram: Path) -> None:
    """The claim has what it had, here and in the record."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        await prepared(scene, waiting("a"))
        more = objects.Merge({"status": status("a", result("numa-1", cpu="7"))["status"]})
        ref = objects.Ref(kinds.RESOURCE_CLAIMS, "a", "t")
        await scene.store.patch(ref, more, subresource="status")
        answers = await scene.ask("Prepare", "a")
        assert "of its 7 CPUs" in answers["a"]
        [claim] = driver._claims.values()
        assert claim.count == 2
        assert scene.holds() == {"claim/t/a": "4-5"}


async def test_a_socket_that_somebody_removed_is_made_again(ram: Path) -> None:
    """A kubelet whose directory was emptied finds the driver again."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        [path] = scene.folder.glob("*.sock")
        driver.registered("")
        path.unlink()
        await scene.passes()
        assert await scene.ask("Unprepare", "none") == {"none": ""}
        assert driver.counted()["registration"] == 0


async def test_claims_of_one_request_wait_at_the_same_time(ram: Path) -> None:
    """The kubelet has one deadline for all claims of a pod that is not known here yet."""
    async with claim_node(ram) as scene, scene.agent():
        names = ("a", "b", "c")
        for name in names:
            await make(scene, status(name, result("numa-1", cpu="1"), pods=(f"uid-{name}",)))
        scene.sources.say(pods=(LS, replace(waiting(*names), uid="uid-c", name="c")))
        asked = asyncio.create_task(scene.ask("Prepare", *names))
        await deadline.comes(lambda: scene.holds() == {"claim/t/c": "4"})
        asked.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asked
