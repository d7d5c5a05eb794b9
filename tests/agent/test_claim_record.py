"""What the driver of resource claims tells the kubelet is on disk, be it full or slow.

Covers: what is answered while the record of the claims cannot be written, what is found later.
Does not cover: kills between changes of the machine (``test_dra_driver``).
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from koordlet.agent import claim_record
from koordlet.model import pod
from koordlet.state import disk
from tests.kit import deadline, needs
from tests.kit.claim_scene import LS, Scene, claim_node, make, using
from tests.kit.prepared_claims import claim, result, status


@pytest.fixture
def small(ram: Path) -> Iterator[Path]:
    """The folder of a scene whose agents keep their state on a file system of 1 MB."""
    state = ram / "state"
    state.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(state)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        needs.missing(f"no file system can be mounted: {error}")
    try:
        yield ram
    finally:
        subprocess.run(["umount", state], check=True)


def fill(state: Path) -> Path:
    """Take all room of a file system; the file that has it."""
    filler = state / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return filler
    raise AssertionError(state)


def on_disk(scene: Scene) -> list[str]:
    """The claims of the record, as an agent finds it that comes after a kill at this moment."""
    assert scene.who is not None
    record, problem = claim_record.revive(scene.who.checkpoints)
    assert not problem
    return [kept.name for kept in record.claims]


async def two_claims(scene: Scene) -> None:
    """A pod that uses two claims. It does not run yet: only the record has what is prepared."""
    scene.sources.say(pods=(LS, replace(using("a", "b"), phase=pod.Phase.PENDING)))
    await make(scene, status("a", result("numa-1", cpu="2")))
    await make(scene, status("b", result("numa-0", cpu="1")))


async def test_a_full_disk_refuses_to_prepare_and_never_to_unprepare(small: Path) -> None:
    """The kubelet is told the cause, nothing is taken; with room again the next attempt has all."""
    async with claim_node(small) as scene:
        await two_claims(scene)
        async with scene.agent() as driver:
            assert await scene.ask("Prepare", "a") == {"a": ""}
            sets, filler = scene.sets(), fill(small / "state")
            answers = await scene.ask("Prepare", "b")
            assert "dra_driver.json: No space left on device" in answers["b"]
            assert (scene.sets(), scene.holds()) == (sets, {"claim/t/a": "4-5"})
            assert (driver.counted()["claims"], on_disk(scene)) == (1, ["a"])
            assert await scene.ask("Prepare", "a") == {"a": ""}
            assert await scene.ask("Unprepare", "a") == {"a": ""}
            assert scene.holds() == {}
            filler.unlink()
            assert await scene.ask("Prepare", "b") == {"b": ""}
        async with scene.agent():
            fill(small / "state")
            assert await scene.ask("Prepare", "b") == {"b": ""}
            assert scene.holds() == {"claim/t/b": "1"}


async def test_no_answer_comes_before_the_record_is_on_disk(ram: Path) -> None:
    """A disk that hangs: both verbs wait for it; a kill right after the answer costs nothing."""
    async with claim_node(ram) as scene:
        await two_claims(scene)
        async with scene.agent():
            with Slow(scene) as slow:
                prepares = asyncio.create_task(scene.ask("Prepare", "a"))
                await slow.looked()
                assert (prepares.done(), scene.holds(), on_disk(scene)) == (False, {}, [])
                slow.gate.set()
                assert await prepares == {"a": ""}
                assert on_disk(scene) == ["a"]
        async with scene.agent():
            assert scene.holds() == {"claim/t/a": "4-5"}
            with Slow(scene) as slow:
                unprepares = asyncio.create_task(scene.ask("Unprepare", "a"))
                await slow.looked()
                assert (unprepares.done(), on_disk(scene)) == (False, ["a"])
                slow.gate.set()
                assert await unprepares == {"a": ""}
                assert on_disk(scene) == []
        scene.sources.say(pods=(LS,))
        async with scene.agent():
            assert scene.holds() == {}


async def test_a_disk_that_hangs_for_too_long_refuses_to_prepare(ram: Path) -> None:
    """Before the kubelet's own deadline, so that the cause is in the pod's events."""
    async with claim_node(ram) as scene:
        await two_claims(scene)
        async with scene.agent() as driver:
            with Slow(scene):
                driver._clock = itertools.count(0.0, 10.0).__next__
                answers = await scene.ask("Prepare", "a")
                assert "does not answer" in answers["a"]
                assert (scene.holds(), driver.counted()["claims"]) == ({}, 0)
            assert await scene.ask("Prepare", "a") == {"a": ""}


async def test_a_kubelet_that_waits_no_longer_leaves_nothing_in_the_record(ram: Path) -> None:
    """Its deadline passes while the disk hangs; a pod that shares the claim is served after it."""
    async with claim_node(ram) as scene:
        await two_claims(scene)
        async with scene.agent():
            with Slow(scene) as slow:
                gives_up = asyncio.create_task(scene.ask("Prepare", "a"))
                await slow.looked()
                shares_it = asyncio.create_task(scene.ask("Prepare", "a"))
                other = asyncio.create_task(scene.ask("Prepare", "b"))
                gives_up.cancel()
                await asyncio.wait([gives_up])
                slow.gate.set()
                assert (await shares_it, await other) == ({"a": ""}, {"b": ""})
            assert scene.holds() == {"claim/t/a": "4-5", "claim/t/b": "1"}
            assert await scene.ask("Unprepare", "a") == {"a": ""}
            with Slow(scene) as slow:
                gives_up = asyncio.create_task(scene.ask("Prepare", "a"))
                await slow.looked()
                gives_up.cancel()
                await asyncio.wait([gives_up])
        async with scene.agent():
            assert scene.holds() == {"claim/t/b": "1"}


async def test_a_disk_stuck_with_another_errand_keeps_a_claim_waiting(ram: Path) -> None:
    """For as long as one that hangs, and what it refused once is not told as the cause."""
    async with claim_node(ram) as scene:
        await two_claims(scene)
        async with scene.agent() as driver:
            assert scene.who is not None
            in_the_way = scene.who.checkpoints.directory / "dra_driver.json"
            in_the_way.mkdir()
            answers = await scene.ask("Prepare", "a")
            assert "Is a directory" in answers["a"]
            in_the_way.rmdir()
            with Slow(scene, stuck=True) as slow:
                prepares = asyncio.create_task(scene.ask("Prepare", "a"))
                await slow.looked()
                slow.gate.set()
                assert await prepares == {"a": ""}
                assert on_disk(scene) == ["a"]
            with Slow(scene, stuck=True):
                driver._clock = itertools.count(0.0, 10.0).__next__
                answers = await scene.ask("Prepare", "b")
                assert "does not answer" in answers["b"]
                assert scene.holds() == {"claim/t/a": "4-5"}


async def test_a_claim_that_is_held_again_is_answered_once_it_is_on_disk(ram: Path) -> None:
    """No record has it, its pod runs, and the disk refuses; so it is when it was there before."""
    async with claim_node(ram) as scene, scene.agent() as driver:
        assert scene.who is not None
        in_the_way = scene.who.checkpoints.directory / "dra_driver.json"
        scene.sources.say(pods=(LS, using("a")))
        await make(scene, status("a", result("numa-1", cpu="2")))
        for _ in range(2):
            in_the_way.unlink(missing_ok=True)
            in_the_way.mkdir()
            assert await scene.ask("Unprepare", "a") == {"a": ""}
            assert scene.holds() == {}
            driver.registered("")
            await scene.passes()
            assert scene.holds() == {"claim/t/a": "4-5"}
            answers = await scene.ask("Prepare", "a")
            assert "Is a directory" in answers["a"]
            assert scene.holds() == {"claim/t/a": "4-5"}
            in_the_way.rmdir()
            assert await scene.ask("Prepare", "a") == {"a": ""}
            assert on_disk(scene) == ["a"]


async def test_a_claim_is_known_to_be_on_disk_until_a_record_lacks_it(ram: Path) -> None:
    """Which of the later records the disk has written is not known before it says so."""
    async with claim_node(ram) as scene, scene.agent():
        assert scene.who is not None
        record, kept = claim_record.ClaimRecord(scene.who, ()), claim("a")
        known = []
        for claims in ((kept,), (kept, claim("b")), (), (kept,)):
            record.save("d", claims)
            known.append(record.has(kept))
            if claims == (kept,):
                assert await record.written(lambda: 0.0, 1.0) == ""
                assert record.has(kept)
        assert known == [False, True, False, False]


class CountedDisk(disk.Disk):
    """A disk that knows how often somebody looked whether it has written checkpoints."""

    looks = 0

    def wait(self, what: str, patience: float = disk.OPENING) -> bool:
        """Count, and wait."""
        self.looks += what == "checkpoints"
        return super().wait(what, patience)


class Slow:
    """The disk of an agent's checkpoints hangs until the gate is opened.

    ``stuck``: with another errand, for so long that it takes no more.
    """

    def __init__(self, scene: Scene, *, stuck: bool = False) -> None:
        assert scene.who is not None
        self._checkpoints = scene.who.checkpoints
        self._before = self._checkpoints.disk
        self._now, self._stuck = 0.0, stuck
        self._disk = CountedDisk(self._before.place, inline=False, clock=lambda: self._now)
        self.gate = threading.Event()

    def __enter__(self) -> Self:
        began = threading.Event()
        self._disk.ask("an errand", began.set)
        self._disk.ask("something else", lambda: self.gate.wait(30.0))
        assert began.wait(30.0)
        self._now += 60.0 * self._stuck
        self._checkpoints.disk = self._disk
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._disk.settle(30.0)
        self._checkpoints.flush(30.0)
        self._disk.close()
        self._checkpoints.disk = self._before

    async def looked(self) -> None:
        """Until the driver has saved its record, and looked in vain twice more for an answer."""
        await deadline.comes(lambda: self._disk.looks > 0)
        # A flush waits twice.
        enough = self._disk.looks + 4
        await deadline.comes(lambda: self._disk.looks >= enough)
