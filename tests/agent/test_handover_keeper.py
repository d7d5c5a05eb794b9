"""Who puts the limits back after an agent has ended, and when (under systemd: ``tests.vm``)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from koordlet.agent import handover_keeper
from koordlet.agent import restore as agent_restore
from koordlet.host.systemd import units
from koordlet.model import errors
from koordlet.state import handover, lock

UNIT = "koordlet.service"
DONE = agent_restore.Summary(restored=3, left=(), failed=())
RESTARTING = units.SystemdUnit(active="deactivating", sub="stop-post", job="restart")
STOPPING = units.SystemdUnit(active="deactivating", sub="stop-post", job="stop")
FAILED = units.SystemdUnit(active="failed", sub="failed")


@dataclass
class Scene:
    """A machine without an agent: a clock that pauses move, and what happens at given times."""

    where: Path
    unit: units.SystemdUnit = RESTARTING
    helper: units.SystemdUnit = STOPPING
    #: Seconds to what happens then.
    plot: dict[float, Callable[[], object]] = field(default_factory=dict)
    #: Told to stop at that time.
    stop_at: float = float("inf")
    #: Limits are in place.
    left: bool = False
    now: float = 100.0
    started: list[str] = field(default_factory=list)
    restored: list[tuple[float, bool]] = field(default_factory=list)
    trouble: Exception | None = None

    def __post_init__(self) -> None:
        """The real files."""
        self.deadline = handover.Handover(self.where / "handover.json", "this boot")
        self.lock = lock.Lock(self.where / "lock")
        self.agent = lock.Lock(self.where / "lock")

    def pause(self, seconds: float) -> bool:
        """Time passes, and what was to happen happens."""
        self.now = min(self.now + seconds, self.stop_at)
        for at in sorted(self.plot):
            if at <= self.now:
                self.plot.pop(at)()
        if self.now >= self.stop_at:
            self.stop_at = float("inf")
            return True
        return False

    def restore(self, *, final: bool) -> agent_restore.Summary:
        """Everything is back, unless somebody has the lock."""
        self.lock.acquire()
        self.lock.release()
        self.restored.append((self.now, final))
        if final:
            self.deadline.clear()
        return DONE

    def look(self, unit: str) -> units.SystemdUnit:
        """What systemd says."""
        if self.trouble is not None:
            raise self.trouble
        return {UNIT: self.unit, "koordlet-restore.service": self.helper}[unit]

    def keeper(self, unit: str = UNIT) -> handover_keeper.HandoverKeeper:
        """The one under test."""
        world = handover_keeper.World(
            pause=self.pause, clock=lambda: self.now, look=self.look, start=self.started.append
        )
        return handover_keeper.HandoverKeeper(
            unit=unit, lock=self.lock, deadline=self.deadline, restore=self.restore, world=world
        )

    def left_over(self) -> bool:
        """Whether limits are in place."""
        return self.left

    def recorded(self) -> float | None:
        """The deadline."""
        deadline = self.deadline.read()
        return deadline.boottime if deadline is not None else None


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A fresh one."""
    return Scene(tmp_path)


def test_before_a_restart_the_limits_stay(scene: Scene) -> None:
    """A deadline is recorded and somebody waits for it; nothing is restored."""
    outcome = scene.keeper().after_stop("success", 120)

    assert outcome == "koordlet.service comes back: limits stay for 120 s"
    assert (
        scene.recorded(),
        scene.started,
        scene.restored,
    ) == (220.0, ["koordlet-restore.service"], [])


def test_a_crash_loop_does_not_move_its_deadline(scene: Scene) -> None:
    """The second crash leaves the deadline of the first, also when it has passed already."""
    scene.unit = units.SystemdUnit(active="deactivating", sub="stop-post")
    for scene.now in (100.0, 150.0, 900.0):
        scene.keeper().after_stop("exit-code", 120)

    assert scene.recorded() == 220.0


def test_a_final_stop_restores_at_once(scene: Scene) -> None:
    """Also when the agent left a deadline, as it does on SIGTERM."""
    scene.unit = STOPPING
    scene.deadline.record(220.0)

    assert scene.keeper().after_stop("success", 120) == DONE
    assert (scene.restored, scene.recorded(), scene.started) == ([(100.0, True)], None, [])


def test_where_nobody_can_wait_it_is_restored_at_once(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an answer from systemd no deadline would be kept."""
    scene.trouble = units.SystemdError("no bus")

    assert scene.keeper().after_stop("signal", 120) == DONE
    assert scene.restored == [(100.0, True)]
    assert "no bus" in capsys.readouterr().err


class FullDisk(handover.Handover):
    """No deadline can be written any more."""

    def record(self, boottime: float) -> handover.Deadline:
        """The disk has no room."""
        del boottime
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("act", "final"),
    [
        (lambda keeper: keeper.after_stop("exit-code", 120), True),
        (lambda keeper: keeper.after_failed_start(120), False),
        (lambda keeper: keeper.when_overdue(120, lambda: True), False),
    ],
)
def test_a_deadline_that_cannot_be_written_has_passed(
    scene: Scene,
    act: Callable[[handover_keeper.HandoverKeeper], object],
    final: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a full disk nobody would know of it, and the limits would stay for ever."""
    scene.deadline = FullDisk(scene.where / "handover.json", "this boot")

    assert act(scene.keeper()) == DONE
    assert (scene.restored, scene.started) == ([(100.0, final)], [])
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("unit", [RESTARTING, STOPPING])
def test_another_agent_is_left_alone(scene: Scene, unit: units.SystemdUnit) -> None:
    """A unit that failed because somebody else runs records and restores nothing."""
    scene.unit = unit
    scene.agent.acquire()

    outcome = scene.keeper().after_stop("exit-code", 120)

    assert isinstance(outcome, str)
    assert "another koordlet is running" in outcome
    assert (scene.recorded(), scene.restored, scene.started) == (None, [], [])


def test_a_restore_that_is_at_work_is_waited_for(scene: Scene) -> None:
    """It has the lock for a moment, and is no agent."""
    scene.unit = STOPPING
    scene.agent.acquire()
    scene.plot[102.0] = scene.agent.release

    assert scene.keeper().after_stop("success", 120) == DONE
    assert scene.restored == [(102.0, True)]


def test_a_ready_agent_ends_the_wait(scene: Scene) -> None:
    """It has cleared the deadline: nothing is left to do."""
    scene.deadline.record(220.0)
    scene.plot[150.0] = scene.deadline.clear

    outcome = scene.keeper().when_overdue(120, scene.left_over)

    assert isinstance(outcome, str)
    assert (scene.now, scene.restored) == (150.0, [])


def test_without_a_deadline_there_is_nothing_to_wait_for(scene: Scene) -> None:
    """Also not for one of another boot."""
    handover.Handover(scene.where / "handover.json", "another boot").record(5.0)

    assert isinstance(scene.keeper().when_overdue(120, scene.left_over), str)
    assert (scene.now, scene.restored) == (100.0, [])


def test_the_deadline_passes(scene: Scene) -> None:
    """At the deadline everything goes; the deadline itself stays for the next crash."""
    scene.deadline.record(102.5)

    assert scene.keeper().when_overdue(120, scene.left_over) == DONE
    assert (scene.restored, scene.recorded()) == ([(102.5, False)], 102.5)


def test_the_deadline_passes_while_a_crash_loop_has_the_lock(scene: Scene) -> None:
    """The lock is waited for, and taken when that agent has died again."""
    scene.deadline.record(101.0)
    scene.agent.acquire()
    scene.plot[130.0] = scene.agent.release

    assert scene.keeper().when_overdue(120, scene.left_over) == DONE
    assert scene.restored == [(130.0, False)]


def test_an_agent_that_becomes_ready_late_keeps_its_limits(scene: Scene) -> None:
    """It has the lock when the deadline passes, and clears it: nobody fights it."""
    scene.deadline.record(101.0)
    scene.agent.acquire()
    scene.plot[140.0] = scene.deadline.clear

    assert isinstance(scene.keeper().when_overdue(120, scene.left_over), str)
    assert scene.restored == []


def test_a_stop_ends_the_wait_and_the_limits_stay(scene: Scene) -> None:
    """That only ends the wait: what follows is decided after it."""
    scene.deadline.record(220.0)
    scene.stop_at = 110.0

    assert scene.keeper().when_overdue(120, scene.left_over) == "told to stop: limits stay"
    assert (scene.now, scene.restored, scene.recorded()) == (110.0, [], 220.0)


def test_an_end_of_which_nothing_was_recorded(scene: Scene) -> None:
    """Killed with all that would have recorded it: the deadline counts from who looks first."""
    scene.left = True

    assert scene.keeper().when_overdue(120, scene.left_over) == DONE
    assert scene.restored == [(220.0, False)]


def test_an_agent_that_runs_gets_no_deadline(scene: Scene) -> None:
    """Its limits are looked after, ready or not."""
    scene.left = True
    scene.agent.acquire()

    outcome = scene.keeper().when_overdue(120, scene.left_over)

    assert "another koordlet is running" in str(outcome)
    assert (scene.recorded(), scene.restored) == (None, [])


def test_stopped_together_with_a_unit_that_was_down(scene: Scene) -> None:
    """The stop was meant for the agent, which had nothing left to stop: restored at once."""
    scene.unit, scene.helper = FAILED, STOPPING
    scene.deadline.record(220.0)

    assert scene.keeper().after_wait() == DONE
    assert (scene.restored, scene.recorded()) == ([(100.0, True)], None)


@pytest.mark.parametrize(
    ("unit", "helper"),
    [
        (RESTARTING, STOPPING),  # the agent comes back
        (STOPPING, STOPPING),  # the agent's unit restores for itself
        (FAILED, RESTARTING),  # the restart of a unit that then ran into its limit
        (FAILED, units.SystemdUnit(active="deactivating", sub="stop-post")),  # it ended by itself
    ],
)
def test_somebody_else_sees_to_it(
    scene: Scene, unit: units.SystemdUnit, helper: units.SystemdUnit
) -> None:
    """The limits stay where an agent, its unit or another wait is there for them."""
    scene.unit, scene.helper = unit, helper
    scene.deadline.record(220.0)

    assert scene.keeper().after_wait() == "the rest is up to koordlet.service"
    assert (scene.restored, scene.recorded()) == ([], 220.0)


def test_after_the_wait_systemd_is_silent(scene: Scene) -> None:
    """Then nobody can be relied on."""
    scene.deadline.record(220.0)
    scene.trouble = units.SystemdError("no bus")

    assert scene.keeper().after_wait() == DONE


def test_another_trouble_is_not_waited_out(scene: Scene) -> None:
    """Only a held lock is waited for; anything else is an error that ends the command."""

    def broken(*, final: bool) -> agent_restore.Summary:
        raise errors.HostError(f"no root, {final}")

    scene.deadline.record(50.0)
    keeper = handover_keeper.HandoverKeeper(
        unit=UNIT,
        lock=scene.lock,
        deadline=scene.deadline,
        restore=broken,
        world=scene.keeper().world,
    )

    with pytest.raises(errors.HostError, match="no root"):
        keeper.when_overdue(120, lambda: True)


def test_a_start_that_fails_is_its_own_helper(scene: Scene) -> None:
    """The first failure records the deadline, later ones keep it; after it they restore."""
    outcomes = []
    for scene.now in (100.0, 160.0, 230.0, 290.0):
        outcomes.append(scene.keeper("").after_failed_start(120))

    assert [outcomes[0], *outcomes[2:]] == ["limits of an earlier agent stay for 120 s", DONE, DONE]
    assert scene.restored == [(230.0, False), (290.0, False)]


def test_a_start_that_fails_beside_an_agent_does_nothing(scene: Scene) -> None:
    """The agent that runs keeps its limits, and gets no deadline."""
    scene.agent.acquire()

    assert isinstance(scene.keeper("").after_failed_start(120), str)
    assert (scene.recorded(), scene.restored) == (None, [])
