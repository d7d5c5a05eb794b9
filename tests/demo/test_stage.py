"""Where the demo plays, and the whole story on the recorded machine, without waiting for it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from koordlet.agent import lifecycle
from koordlet.config import sourced
from koordlet.demo import groups, kernel, latency, stage
from koordlet.host import machine
from koordlet.host.fs import live_host
from koordlet.report import node_json, view
from koordlet.state import paths

REPO = Path(__file__).resolve().parents[2]
FLAGS: dict[str, object] = {
    "policies.shared_pools.enableControllers": sourced.Flag(value=True, spelling="--demo"),
    "policies.reserved_cpus.quantity": sourced.Flag("1", "--demo"),
}
_SHADOW = sourced.Flag("shadow", "KOORDLET_POLICIES__ADAPTIVE__MODE")

#: The first round of calm and spike begins so many seconds after the start.
_ROUND_AFTER_STEPS = 80.0


@pytest.fixture
def args(tmp_path: Path) -> argparse.Namespace:
    """A command line with a file that says nothing."""
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: koordlet.io/v1\nkind: Config\n")
    return argparse.Namespace(config=str(file), state_dir=None, cgroup_root="elsewhere")


class Clock:
    """Goes on when a test says so."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> machine.Now:
        return machine.Now(at=self.at, wall=1.7e9 + self.at)


def test_the_recording_is_the_one_that_was_judged() -> None:
    """The demo's machine is that of the fixtures, byte for byte."""
    fixture = REPO / "fixtures/sysfs/vm-2s8t.tar.gz"

    assert stage.ARCHIVE.read_bytes() == fixture.read_bytes()


def test_the_story(
    args: argparse.Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three owners, best-effort work goes aside for a spike, and everything is put back."""
    clock = Clock()
    monkeypatch.setattr(machine, "now", clock)
    play = stage.Elsewhere(args, FLAGS)
    where = paths.Paths(run=tmp_path / "run", lib=tmp_path, log=tmp_path)
    who = lifecycle.Agent(play.tick, play.paths(where), enforce=True)
    before = who.tick.host.list(who.tick.host.at(kernel.TOP))

    clock.at += _ROUND_AFTER_STEPS
    calm = _pass(who, clock, 12.0)
    play.requests()
    spike = _pass(who, clock, 6.0)
    assert (calm.plan.limit is not None, spike.plan.limit is not None) == (True, True)
    busy = latency.Latency.of(play.requests(), 6.0)
    later = _pass(who, clock, 8.0)

    owners = {claim.owner.value for claim in calm.plan.ledger.claims}
    assert {"reserved", "LSE"} <= owners
    assert calm.plan.limit is not None
    assert spike.plan.limit is not None
    assert later.plan.limit is not None
    uses = [each.plan.limit.be_milli or 0 for each in (calm, spike, later) if each.plan.limit]
    assert uses[1] < 0.3 * min(uses[0], uses[2])
    rest = latency.Latency.of(list(play.requests())[-100:], 1.0)
    assert busy is not None
    assert rest is not None
    assert busy.p99 > rest.p99
    who.restore()
    assert who.tick.host.list(who.tick.host.at(kernel.TOP)) == before
    who.close()
    play.close()


def _pass(who: lifecycle.Agent, clock: Clock, seconds: float) -> view.ReportView:
    """So many seconds of an agent; the last view."""
    end = clock.at + seconds
    for n in range(round(10 * seconds)):
        clock.at = end - seconds + 0.1 * (n + 1)
        if who.tick.strained() or n % 10 == 9:
            who.one_pass(slow=n % 100 == 9)
    assert who.publisher.view is not None
    return who.publisher.view


def test_a_phase_without_koordlet(
    args: argparse.Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its policies stay in shadow and what they wrote goes back; the demo keeps its groups."""
    clock = Clock()
    monkeypatch.setattr(machine, "now", clock)
    play = stage.Elsewhere(args, FLAGS)
    who = lifecycle.Agent(
        play.tick,
        play.paths(paths.Paths(run=tmp_path / "r", lib=tmp_path, log=tmp_path)),
        enforce=True,
    )
    texts = []
    for on in (True, False, True):
        play.switch(on=on)
        _pass(who, clock, 3.0)
        group = f"{kernel.TOP}/{groups.GROUP}/be"
        host = play.tick.host
        names = ("cpu.idle", "cpuset.cpus.effective", "cgroup.procs")
        texts.append([host.text(host.at(f"{group}/{name}")).strip() for name in names])
    who.restore()
    who.close()
    play.close()

    assert texts == [["1", "1-3,6-7", "4102"], ["0", "0-7", "4102"], ["1", "1-3,6-7", "4102"]]


def test_without_root_it_plays_elsewhere(
    args: argparse.Namespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so; nobody is asked or evicted; who wants to observe, observes this machine."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    play = stage.choose(args, live_host.LiveHost(), FLAGS)
    errors = capsys.readouterr().err
    play.tick.observer.close()
    play.close()
    watching = {**FLAGS, "mode": sourced.Flag("observe", "--observe")}
    here = stage.choose(args, live_host.LiveHost(), watching)
    here.close()

    assert isinstance(play, stage.Elsewhere)
    assert errors.count("\n") == 1
    assert "not running as root: the demo runs on a recorded machine" in errors
    assert play.config.config.eviction.by == "api"
    assert not play.tick.host.live
    assert (type(here), here.tick.host.live) == (stage.Stage, True)
    assert "observing only" in capsys.readouterr().err


def test_the_last_line() -> None:
    """All is as it was, or how much is not and what to do about it."""
    assert "all changes are undone" in stage.farewell(0)
    assert "3 changes could not be undone" in stage.farewell(3)
    assert "koordlet restore" in stage.farewell(3)


def test_the_story_of_a_policy_in_shadow(
    args: argparse.Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing makes best-effort work yield in the spike, requests take longer, the page says so."""
    clock = Clock()
    monkeypatch.setattr(machine, "now", clock)
    play = stage.Elsewhere(args, {**FLAGS, "policies.adaptive.mode": _SHADOW})
    where = paths.Paths(run=tmp_path / "run", lib=tmp_path, log=tmp_path)
    who = lifecycle.Agent(play.tick, play.paths(where), enforce=True)

    clock.at += _ROUND_AFTER_STEPS
    _pass(who, clock, 12.0)
    play.requests()
    spike = _pass(who, clock, 6.0)
    idle = play.tick.host.at(f"{kernel.TOP}/{groups.GROUP}/be/cpu.idle")
    text = play.tick.host.text(idle)
    slow = latency.Latency.of(play.requests(), 6.0)
    told = node_json.document(spike, "1")
    who.restore()
    who.close()
    play.close()

    assert text == "0\n"
    assert slow is not None
    assert slow.p99 > 20
    assert spike.plan.limit is not None
    assert view.acting(spike) is None
    assert told["banner"] == [*view.banner(spike)] != []
