"""The driver of resource claims on a machine in memory, asked over its socket as the kubelet asks.

Covers: preparing and unpreparing with their files, refusals, agents that die in between, a policy
that changes its mind. Does not cover: a real kubelet (``tests.cluster.test_dra_driver``).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from dataclasses import replace
from pathlib import Path

from koordlet.kubeapi import kinds, objects
from koordlet.model import kubelet, pod
from koordlet.rpc import dra_plugin
from tests.kit import dying, prepared_claims, resctrl
from tests.kit.claim_scene import LS, claim_node, make, using
from tests.kit.prepared_claims import result, status

STATIC = kubelet.Kubelet(configuration=kubelet.Configuration(cpu_manager_policy="static"))


async def test_from_prepared_to_unprepared(ram: Path) -> None:
    """Prepared: the container has the claim's CPUs, others are off them. Then all is as before."""
    async with claim_node(ram) as scene:
        scene.sources.say(pods=(LS, using("a")))
        async with scene.agent() as driver:
            before = scene.sets()
            assert before == {"ls": "1-7", "p": "1-7", "p/" + "a" * 64: "1-7"}
            await make(scene, status("a", result("numa-1", cpu="2")))
            assert await scene.ask("Prepare", "a") == {"a": ""}
            assert scene.sets() == {"ls": "1-3,6-7", "p": "4-5", "p/" + "a" * 64: "4-5"}
            assert scene.holds() == {"claim/t/a": "4-5"}
            assert await scene.ask("Prepare", "a") == {"a": ""}
            assert driver.counted()["prepared"] == 1
            assert await scene.ask("Unprepare", "a") == {"a": ""}
            assert await scene.ask("Unprepare", "a") == {"a": ""}
            assert scene.sets() == before
            assert driver.counted()["claims"] == 0


async def test_what_cannot_be_prepared_is_refused_and_costs_nothing(ram: Path) -> None:
    """More than the device has left, an unknown claim, pods that nobody knows; then a good one."""
    async with claim_node(ram) as scene:
        scene.sources.say(pods=(LS, using("a", "b")))
        async with scene.agent() as driver:
            driver._clock = itertools.count(0.0, 5.0).__next__
            await make(scene, status("a", result("numa-0", cpu="3")))
            await make(scene, status("b", result("numa-0", cpu="1")))
            await make(scene, status("lost", result("numa-0", cpu="1"), pods=("uid-q",)))
            assert await scene.ask("Prepare", "a") == {"a": ""}
            answers = await scene.ask("Prepare", "b", "none", "lost")
            assert "not enough cpus available" in answers["b"]
            assert "none" in answers["none"]
            assert "none of the pods that it is reserved for is known" in answers["lost"]
            assert scene.holds() == {"claim/t/a": "1-3"}
            assert (driver.counted()["refused"], driver.counted()["claims"]) == (3, 1)
            await scene.ask("Unprepare", "a")
            assert await scene.ask("Prepare", "b") == {"b": ""}
            assert scene.holds() == {"claim/t/b": "1"}


async def test_a_claim_that_waits_for_its_pod_keeps_no_other_waiting(ram: Path) -> None:
    """Its pod is known late, after another claim has been prepared and given back."""
    async with claim_node(ram) as scene:
        late_pod = replace(using("b"), uid="uid-q", name="q", phase=pod.Phase.PENDING)
        scene.sources.say(pods=(LS, late_pod))
        await make(scene, status("a", result("numa-1", cpu="2")))
        await make(scene, status("b", result("numa-0", cpu="1"), pods=("uid-q",)))
        async with scene.agent():
            waits = asyncio.create_task(scene.ask("Prepare", "a"))
            assert await scene.ask("Prepare", "b") == {"b": ""}
            assert await scene.ask("Unprepare", "b") == {"b": ""}
            assert not waits.done()
            scene.sources.say(pods=(LS, late_pod, using("a")))
            assert await waits == {"a": ""}
            assert scene.holds() == {"claim/t/a": "4-5"}


async def test_a_claim_outlives_its_agent(ram: Path) -> None:
    """Gone after preparing: the next agent holds the same CPUs from its first pass, and serves."""
    async with claim_node(ram) as scene:
        # A claim of a pod that does not run yet is in the checkpoint alone.
        waiting = replace(using("a"), phase=pod.Phase.PENDING)
        scene.sources.say(pods=(LS, waiting))
        await make(scene, status("a", result("numa-1", cpu="2")))
        async with scene.agent():
            await scene.ask("Prepare", "a")
            before = scene.sets()
        async with scene.agent() as driver:
            assert (scene.sets(), scene.holds()) == (before, {"claim/t/a": "4-5"})
            assert driver.counted()["claims"] == 1
            assert await scene.ask("Prepare", "a") == {"a": ""}
            assert await scene.ask("Unprepare", "a") == {"a": ""}
        scene.sources.say(pods=(LS,))
        async with scene.agent():
            assert scene.holds() == {}


async def test_claims_are_compared_with_the_server_after_a_start(ram: Path) -> None:
    """One that is gone, one that is free, one of a running pod that no checkpoint has."""
    async with claim_node(ram) as scene:
        scene.sources.say(pods=(LS, using("gone", "free")))
        await make(scene, status("gone", result("numa-1", cpu="1")))
        await make(scene, status("free", result("numa-1", cpu="1")))
        async with scene.agent():
            assert await scene.ask("Prepare", "gone", "free") == {"free": "", "gone": ""}
        await scene.store.delete(objects.Ref(kinds.RESOURCE_CLAIMS, "gone", "t"))
        free = objects.Ref(kinds.RESOURCE_CLAIMS, "free", "t")
        nobody = objects.Merge({"status": {"reservedFor": None}})
        await scene.store.patch(free, nobody, subresource="status")
        await make(scene, status("lost", result("numa-1", cpu="3")))
        scene.sources.say(pods=(LS, using("lost")))
        async with scene.agent():
            assert scene.holds() == {"claim/t/lost": "4-6"}


async def test_a_claim_that_is_unprepared_before_it_is_compared_is_not_held_again(
    ram: Path,
) -> None:
    """The kubelet ends a pod while an agent starts; the server says that it uses the claim."""
    async with claim_node(ram) as scene:
        scene.sources.say(pods=(LS, replace(using("a"), deleting=5.0)))
        await make(scene, status("a", result("numa-1", cpu="2")))
        async with scene.agent() as driver:
            ref = dra_plugin.ClaimRef("t", "a", scene.uids["a"])
            await driver.prepare(ref)
            driver.registered("")
            await driver.unprepare(ref)
            await scene.passes()
            assert driver.counted()["claims"] == 0
            driver.registered("")
            await scene.passes()
            assert driver.counted()["claims"] == 0


async def test_a_static_policy_ends_the_offer_and_not_the_claims(ram: Path) -> None:
    """No new claim is prepared; the one that is keeps its CPUs, can end, and then nobody serves."""
    async with claim_node(ram) as scene:
        scene.sources.say(pods=(LS, using("a", "b")))
        await make(scene, status("a", result("numa-1", cpu="2")))
        async with scene.agent():
            await scene.ask("Prepare", "a")
            await make(scene, status("b", result("numa-1", cpu="1")))
            scene.sources.say(kubelet=STATIC)
            await scene.passes()
            answers = await scene.ask("Prepare", "b")
            assert "this node offers no devices now" in answers["b"]
            assert scene.holds() == {"claim/t/a": "4-5"}
            await scene.ask("Unprepare", "a")
            await scene.passes()
            assert not list(scene.folder.glob("*.sock"))
            scene.sources.say(kubelet=prepared_claims.KUBELET)
            await scene.passes()
            assert await scene.ask("Prepare", "b") == {"b": ""}


async def test_a_registration_is_in_force_until_the_kubelet_refuses_or_nobody_serves(
    ram: Path,
) -> None:
    """Slices are written for it: each has its own number, so that they are read again."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        numbers = []
        for problem in ("", "", "bad version", ""):
            driver.registered(problem)
            numbers.append(driver.counted()["registration"])
        assert numbers == [1, 2, 0, 4]
        assert driver.health() == {"numa-0": "", "numa-1": ""}
        scene.sources.say(kubelet=STATIC)
        await scene.passes()
        assert driver.counted()["registration"] == 0
        assert driver.health() == {}


async def test_a_directory_that_is_not_there_is_a_condition(ram: Path) -> None:
    """The socket is tried again; the agent does everything else."""
    async with claim_node(ram) as scene:
        scene.folder = scene.folder / "none"
        async with scene.agent() as driver:
            [condition] = driver.conditions()
            assert condition.type == "DRADriverFailed"
            assert "none" in condition.message
            driver.registered("no such version")
            [condition] = driver.conditions()
            assert "no such version" in condition.message


async def test_ways_of_a_claim_are_its_containers_alone(ram: Path) -> None:
    """CPUs and four ways of the cache beside them: a group with its thread, no other has its ways.

    A claim for more groups than there are is refused; unprepared, the group is gone and all ways
    are everybody's.
    """
    async with claim_node(ram, rdt="intel") as scene:
        scene.sources.say(pods=(LS, using("a")))
        host = scene.site.host
        async with scene.agent():
            [thread] = resctrl.pids(host, "p/" + "a" * 64)
            before = resctrl.values(host, "LS")
            cache = result("cache-1", "cache", ways="4", groups="1", mbaPercent="20")
            await make(scene, status("a", result("numa-1", cpu="2"), cache))
            assert await scene.ask("Prepare", "a") == {"a": ""}
            group = f"koordlet-claim-{scene.uids['a']}"
            ways = resctrl.values(host, group)
            assert ways["L3"][1].bit_count() == 4
            assert ways["MB"][1] == 20
            assert resctrl.values(host, "LS")["L3"][1] == before["L3"][1] & ~ways["L3"][1]
            assert resctrl.values(host, "LS")["L3"][0] == before["L3"][0]
            assert resctrl.inside(host, group) == [thread]
            assert scene.sets()["p/" + "a" * 64] == "4-5"
            assert await scene.ask("Unprepare", "a") == {"a": ""}
            assert resctrl.values(host, "LS") == before
            assert not host.exists(host.at(f"{resctrl.PLACE}/{group}"))


async def test_a_machine_that_gives_no_group_refuses_the_claim(ram: Path) -> None:
    """Another program took the last classes of service after the slices were read."""
    async with claim_node(ram, rdt="intel") as scene:
        scene.sources.say(pods=(LS, using("a")))
        host = scene.site.host
        async with scene.agent():
            await make(scene, status("a", result("cache-1", "cache", ways="2", groups="1")))
            for number in range(64):
                with contextlib.suppress(OSError):
                    host.mkdir(host.at(f"{resctrl.PLACE}/theirs{number}"))
            answers = await scene.ask("Prepare", "a")
            assert "no resctrl group" in answers["a"]
            assert scene.driver is not None
            assert scene.driver.counted()["claims"] == 0


async def test_a_claim_whose_cpus_no_cpuset_can_hold_is_refused_until_one_can(ram: Path) -> None:
    """On v2 somebody took the cpuset controller from the pod's containers: the reason names it.

    Nothing is held meanwhile; handed down again, the next attempt has all. Taken away once more,
    the device that was given is not healthy.
    """
    async with claim_node(ram, version="v2") as scene:
        host, box = scene.site.host, "p/" + "a" * 64
        switch = host.at(f"{scene.top}/p/cgroup.subtree_control")
        host.write(switch, b"-cpuset")
        scene.sources.say(pods=(LS, using("a")))
        async with scene.agent() as driver:
            await make(scene, status("a", result("numa-1", cpu="2")))
            answers = await scene.ask("Prepare", "a")
            assert "claim t/a: container main of t/p cannot be held to CPUs 4-5" in answers["a"]
            assert (
                f"the cpuset controller is not enabled for cgroup {box}; write +c" in answers["a"]
            )
            assert (scene.holds(), driver.counted()["claims"]) == ({}, 0)
            host.write(switch, b"+cpuset")
            assert await scene.ask("Prepare", "a") == {"a": ""}
            assert scene.sets() == {"ls": "1-3,6-7", "p": "4-5", box: "4-5"}
            assert driver.health() == {"numa-0": "", "numa-1": ""}
            host.write(switch, b"-cpuset")
            scene.one_pass()
            assert driver.health()["numa-1"] == answers["a"].partition(" (")[0]


async def test_killed_at_any_change_nothing_is_lost_and_nothing_is_left(ram: Path) -> None:
    """Preparing and unpreparing CPUs with ways: killed before each change of the machine.

    The next agent ends what was begun: the kubelet's second attempt finds all of it, or nothing.
    """
    async with claim_node(ram, rdt="intel") as scene:
        # The kubelet's own state says that it does not run yet: no server's answer holds its claim.
        waiting = replace(using("a"), phase=pod.Phase.PENDING)
        scene.sources.say(pods=(LS, waiting))
        cache = result("cache-1", "cache", ways="4", groups="1", mbaPercent="20")
        await make(scene, status("a", result("numa-1", cpu="2"), cache))
        ref = dra_plugin.ClaimRef("t", "a", scene.uids["a"])
        async with scene.agent() as driver:
            free = scene.site.image()
            await driver.prepare(ref)
            held = scene.site.image()
            await driver.unprepare(ref)
            assert scene.site.image() == free != held

        async def killed(verb: str, change: int) -> bool:
            host = dying.DyingHost(scene.site.host, 10**9)
            async with scene.agent(host) as driver:
                host.after = host.count + change
                try:
                    await getattr(driver, verb)(ref)
                except dying.Killed:
                    return True
            return False

        for change in range(1, 100):
            died = await killed("prepare", change)
            async with scene.agent() as driver:
                assert driver.counted()["claims"] == 1, change
                await driver.prepare(ref)
                assert scene.site.image() == held, change
            died |= await killed("unprepare", change)
            async with scene.agent() as driver:
                await driver.unprepare(ref)
                assert (driver.counted()["claims"], scene.site.image()) == (0, free), change
            if not died:
                break
        assert change > 5
