"""``koordlet replay`` shows each moment of a recording under one configuration or two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet import cli
from tests.kit import recordings

HEADER = "apiVersion: koordlet.io/v1\nkind: Config\n"
CONFIG = HEADER + "policies: {cpu_suppress: {enable: true, cpuSuppressPolicy: cfsQuota}}\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A recording of a machine that is one eighth busy, and a configuration beside it."""
    (tmp_path / "c.yaml").write_text(CONFIG)
    return recordings.record_load(tmp_path)


def replay(capsys: pytest.CaptureFixture[str], archive: Path, *words: str) -> str:
    """Run the command; what it prints."""
    config = str(archive.with_name("c.yaml"))
    status = cli.main(["replay", str(archive), "--config", config, *words])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out


def test_each_frame_is_a_step(capsys: pytest.CaptureFixture[str], recorded: Path) -> None:
    """The document of the contract: when, and the plan of that moment."""
    document = json.loads(replay(capsys, recorded, "-o", "json"))

    assert list(document) == ["version", "steps"]
    assert [1_000_100.0 + n for n in range(4)] == [step["at"] for step in document["steps"]]
    assert all({"writes", "evictions"} <= step["plan"].keys() for step in document["steps"])
    assert [step["cpuMilli"]["node"] for step in document["steps"]] == [None, 2000, 2000, 2000]


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
