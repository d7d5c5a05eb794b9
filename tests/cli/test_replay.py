"""``koordlet replay`` shows each moment of a recording under one configuration or two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import record
from koordlet.host import machine
from koordlet.host.recording import directory
from tests.kit import machines

HEADER = "apiVersion: koordlet.io/v1\nkind: Config\n"
CONFIG = HEADER + "policies: {cpu_suppress: {enable: true, cpuSuppressPolicy: cfsQuota}}\n"
#: The machine has 16 CPUs; hundredths of a second of user and idle time at each frame.
_USER, _IDLE = 200, 1400


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Four frames of a machine that is one eighth busy."""
    first = {"proc/stat": "cpu 0 0 0 0 0 0 0 0\n", "proc/uptime": "1 1\n"}
    tree = machines.to_directory(machines.xeon_2s_smt2() | first, tmp_path / "machine")
    at = 100.0

    def wait(seconds: float) -> None:
        nonlocal at
        at += seconds
        ticks = int(at - 100)
        text = f"cpu {_USER * ticks} 0 0 {_IDLE * ticks} 0 0 0 0\n"
        (tree / "proc" / "stat").write_text(text, encoding="utf-8")

    plan = record.Plan(
        seconds=3.0,
        every=1.0,
        now=lambda: machine.Now(at=at, wall=1_000_000 + at),
        wait=wait,
    )
    out = tmp_path / "a.tar.gz"
    record.write(directory.DirHost(str(tree)), str(out), plan)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return out


def replay(capsys: pytest.CaptureFixture[str], archive: Path, *words: str) -> str:
    """What it prints."""
    config = str(archive.with_name("c.yaml"))
    status = cli.main(["replay", str(archive), "--config", config, *words])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out


def test_each_frame_is_a_step(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    """The document of the contract: when, and the plan of that moment."""
    document = json.loads(replay(capsys, recorded, "-o", "json"))

    assert list(document) == ["version", "steps"]
    assert [1_000_100.0 + n for n in range(4)] == [one["at"] for one in document["steps"]]
    assert all({"writes", "evictions"} <= one["plan"].keys() for one in document["steps"])
    assert [one["cpuMilli"]["node"] for one in document["steps"]] == [None, 2000, 2000, 2000]


def test_another_threshold_is_shown_beside_the_configured_one(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    """Half of 16 CPUs instead of 65 %, less what the machine uses."""
    change = ("--set", "policies.cpu_suppress.cpuSuppressThresholdPercent=50")
    document = json.loads(replay(capsys, recorded, "-o", "json", *change))
    last = document["steps"][-1]["cpuMilli"]

    assert (last["bestEffortLimit"], last["bestEffortLimitAsConfigured"]) == (6000, 8400)
    table = replay(capsys, recorded, *change)
    assert "AS CONFIGURED" in table
    assert "6.00" in table
    picture = replay(capsys, recorded, "-o", "svg", *change)
    assert "limit, as configured" in picture


def test_the_same_recording_is_the_same_answer(
    capsys: pytest.CaptureFixture[str], recorded: Path
) -> None:
    """No clock of this machine, nothing of its files."""
    assert replay(capsys, recorded, "-o", "json") == replay(capsys, recorded, "-o", "json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("policies.cpu_suppress.cpuSuppressTresholdPercent=50", "did you mean"),
        ("nonsense", "KEY=VALUE"),
        ("policies.cpu_suppress.cpuSuppressThresholdPercent=101", "101"),
        ("policies.cpu_suppress.cpuSuppressThresholdPercent=-5", "-5"),
        ("policies.cpu_suppress.cpuSuppressThresholdPercent=much", "much"),
    ],
)
def test_a_bad_change_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], recorded: Path, change: str, words: str
) -> None:
    """It names the key and what is wrong with it."""
    assert cli.main(["replay", str(recorded), "--set", change]) == 2
    assert words in capsys.readouterr().err


def test_no_archive_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The name is in it."""
    assert cli.main(["replay", str(tmp_path / "none.tar.gz")]) == 2
    assert "none.tar.gz" in capsys.readouterr().err
