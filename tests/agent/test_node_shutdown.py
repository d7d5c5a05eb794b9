"""Before a shutdown workloads end row after row, and never longer than the configuration says."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

from koordlet.apply import evictor
from koordlet.model import eviction, result
from koordlet.policy.eviction import node_shutdown as order
from tests.kit import deadline, logs
from tests.kit.node_shutdowns import Login, Stage, played


def test_best_effort_work_ends_first_and_the_lock_goes_when_all_have_ended(tmp_path: Path) -> None:
    """A second signal in between changes nothing; the record has both times."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        assert on.shutdown.conditions() == ()
        on.login.say("begins")
        await deadline.comes(lambda: bool(on.ends.asked))
        on.login.say("begins")
        assert (on.ends.asked, on.login.locked) == (["host/batch"], True)
        assert [condition.reason for condition in on.shutdown.conditions()] == ["NodeShutdown"]
        on.ends.may.set()
        await deadline.comes(lambda: not on.login.locked)
        assert on.ends.asked == ["host/batch", "host/web"]

    reported = played(tmp_path, scene)
    assert [(each.target, each.verdict) for each in reported] == [
        ("pod/host/batch", result.Verdict.DONE),
        ("pod/host/web", result.Verdict.DONE),
    ]
    record = json.loads((tmp_path / "node-shutdown.json").read_text())
    assert record["startTime"] <= record["endTime"]


def test_what_does_not_end_delays_no_longer_than_its_row(tmp_path: Path) -> None:
    """The next row begins, the lock goes, and who was left is reported."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        on.login.say("begins")
        await deadline.comes(lambda: not on.login.locked)

    reported = played(tmp_path, scene, rows=(order.Row(0, 0), order.Row(9000, 0)))
    assert [(each.target, each.verdict, each.detail) for each in reported] == [
        ("pod/host/batch", result.Verdict.LEFT, "still there after 0 s"),
        ("pod/host/web", result.Verdict.LEFT, "still there after 0 s"),
    ]


def test_disk_that_hangs_delays_neither_the_rows_nor_the_end_of_the_agent(tmp_path: Path) -> None:
    """The record is missing, and is told to be; nobody waits for the thread that writes it."""
    may, written = threading.Event(), list[bytes]()

    def write(_: Path, body: bytes) -> bool:
        may.wait(deadline.PATIENCE)
        written.append(body)
        return True

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        on.ends.may.set()
        on.login.say("begins")
        await deadline.comes(lambda: not on.login.locked)
        assert on.ends.asked == ["host/batch", "host/web"]

    with logs.written() as stream:
        played(tmp_path, scene, write=write, patience=0.0)
    assert written == []
    may.set()
    warnings = [line for line in stream.getvalue().splitlines() if "not_recorded" in line]
    assert ["node-shutdown.json: not written within 0 s" in line for line in warnings] == [True] * 2


def test_a_shutdown_that_is_given_up_ends_nobody_more_and_takes_a_new_lock(tmp_path: Path) -> None:
    """The node takes work again, and the next shutdown is delayed like the first."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        on.login.say("begins")
        await deadline.comes(lambda: bool(on.ends.asked))
        on.login.say("given up")
        await deadline.comes(lambda: on.login.asked == 2)
        await deadline.comes(lambda: on.login.locked)
        assert (on.ends.asked, on.shutdown.conditions()) == (["host/batch"], ())

    [left] = played(tmp_path, scene)
    assert (left.verdict, "given up" in left.detail) == (result.Verdict.LEFT, True)


def test_where_it_only_observes_it_takes_no_lock_and_ends_nobody(tmp_path: Path) -> None:
    """The condition is there all the same: the node does shut down."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: bool(on.login._ears))
        on.login.say("begins")
        await deadline.comes(lambda: bool(on.shutdown.conditions()))
        assert (on.login.asked, on.ends.asked) == (0, [])

    assert played(tmp_path, scene, acting=lambda: False) == []
    assert list(tmp_path.iterdir()) == []


def test_a_limit_that_is_too_low_is_raised(tmp_path: Path) -> None:
    """To the sum of the rows; then nothing is to be said of it."""
    login, wanted = Login(most=5.0), list[int]()

    def raised(seconds: int) -> None:
        wanted.append(seconds)
        login.most = float(seconds)

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        assert on.shutdown.conditions() == ()

    played(tmp_path, scene, login=login, raise_limit=raised)
    assert wanted == [120]


def test_an_agent_that_ends_while_it_takes_the_lock_gives_it_back(tmp_path: Path) -> None:
    """The thread that asks for it goes on, and gets it."""
    asks, may = threading.Event(), threading.Event()

    def raised(_: int) -> None:
        asks.set()
        assert may.wait(deadline.PATIENCE)

    async def scene(_: Stage) -> None:
        await deadline.comes(asks.is_set)
        asyncio.get_running_loop().call_soon(may.set)

    login = Login(most=5.0)
    played(tmp_path, scene, login=login, raise_limit=raised)
    assert login.asked == 1


def test_a_limit_that_cannot_be_raised_is_told_with_both_numbers(tmp_path: Path) -> None:
    """The lock is taken all the same: some delay is better than none."""

    def refused(_: int) -> None:
        raise OSError(30, "Read-only file system", "/run/x")

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        [condition] = on.shutdown.conditions()
        assert condition.type == "ShutdownNotDelayed"
        assert "needs 120 s" in condition.message
        assert "allows 5 s" in condition.message
        assert "Read-only file system" in condition.message

    played(tmp_path, scene, login=Login(most=5.0), raise_limit=refused)


def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    """A login manager that was restarted has forgotten its locks; it is asked anew."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        on.login.lost = True
        on.login.say()
        await deadline.comes(lambda: not on.login._ears)
        assert [condition.type for condition in on.shutdown.conditions()] == ["ShutdownNotDelayed"]
        on.login.lost = False
        await deadline.comes(lambda: on.login.asked == 2)
        await deadline.comes(lambda: on.login.locked)
        await deadline.comes(lambda: on.shutdown.conditions() == ())

    played(tmp_path, scene)


def test_lock_follows_the_mode_of_the_agent(tmp_path: Path) -> None:
    """One that was told to observe ends nobody, and delays nothing that it would not use."""
    mode = ["enforce"]

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        mode[:] = ["observe"]
        on.shutdown.follow_mode()
        await deadline.comes(lambda: not on.login.locked)
        mode[:] = ["enforce"]
        on.shutdown.follow_mode()
        await deadline.comes(lambda: on.login.locked)
        mode[:] = ["observe"]
        on.login.say("begins")
        await deadline.comes(lambda: bool(on.shutdown.times().get("end")))
        assert on.ends.asked == []

    assert played(tmp_path, scene, acting=lambda: mode == ["enforce"]) == []


async def loses_the_bus(on: Stage) -> None:
    """Lose the connection once the first row ends."""
    on.login.say("begins")
    await deadline.comes(lambda: bool(on.ends.asked))
    on.login.lost = True
    on.login.say()
    await deadline.comes(lambda: not on.login._ears)


def test_connection_that_is_lost_while_rows_end_does_not_end_the_delay(tmp_path: Path) -> None:
    """The bus ends early in a shutdown; the lock is a descriptor and stays."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        await loses_the_bus(on)
        assert on.login.locked
        on.ends.may.set()
        await deadline.comes(lambda: not on.login.locked)
        assert on.ends.asked == ["host/batch", "host/web"]

    played(tmp_path, scene)


def test_shutdown_whose_beginning_nobody_heard_ends_the_workloads(tmp_path: Path) -> None:
    """The signal came while the connection was lost."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        on.login.preparing = on.login.lost = True
        on.login.say()
        await deadline.comes(lambda: not on.login._ears)
        on.login.lost = False
        await deadline.comes(lambda: on.ends.asked == ["host/batch"])

    played(tmp_path, scene)


def test_shutdown_that_was_given_up_unheard_ends_nobody_more(tmp_path: Path) -> None:
    """A login manager that was started anew shuts nothing down."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        await loses_the_bus(on)
        on.login.lost = False
        await deadline.comes(lambda: on.login.asked == 2)
        assert (on.ends.asked, on.shutdown.conditions()) == (["host/batch"], ())

    played(tmp_path, scene)


def test_workload_whose_end_fails_is_reported_and_costs_no_other_its_own(tmp_path: Path) -> None:
    """Whatever the reason is, somebody reads it in the audit log."""

    async def broken(victim: eviction.Eviction) -> evictor.Outcome:
        if victim.pod == "host/batch":
            raise ValueError("no such unit type")
        return evictor.Outcome(done=True, detail="terminated", gone=True)

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: on.login.locked)
        on.login.say("begins")
        await deadline.comes(lambda: not on.login.locked)

    reported = played(tmp_path, scene, end=broken)
    assert [(each.verdict, each.detail) for each in reported] == [
        (result.Verdict.REFUSED, "ValueError('no such unit type')"),
        (result.Verdict.DONE, "terminated"),
    ]


def test_observing_agent_that_finds_the_login_manager_again_has_no_gap(tmp_path: Path) -> None:
    """It delays nothing by its mode; a connection that was lost once is no condition for ever."""

    async def scene(on: Stage) -> None:
        await deadline.comes(lambda: bool(on.login._ears))
        on.login.lost = True
        on.login.say()
        await deadline.comes(lambda: bool(on.shutdown.conditions()))
        on.login.lost = False
        await deadline.comes(lambda: on.shutdown.conditions() == ())

    played(tmp_path, scene, acting=lambda: False)
