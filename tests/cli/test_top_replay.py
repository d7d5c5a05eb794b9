"""A recording in ``koordlet top``: each moment's document, forward and back."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from koordlet.cli import top_replay
from koordlet.report import documents
from tests.cli import test_top_terminal
from tests.kit import recordings


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Four moments, in which a machine of 16 CPUs gets busier."""
    return str(recordings.record_load(tmp_path, lambda seconds: 100 * seconds * (seconds + 1)))


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Nothing is configured."""
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: koordlet.io/v1\nkind: Config\n")
    return str(file)


@pytest.fixture
def recorded(archive: str, config: str) -> top_replay.RecordingSource:
    """The source of the screen."""
    return top_replay.recorded(
        argparse.Namespace(replay=archive, config=config, pods=None, cgroup_root=None)
    )


def _cores(document: documents.Document) -> object:
    return documents.part(document, "usage").get("cpuCores")


def test_reading_goes_on_and_stays_at_the_end(recorded: top_replay.RecordingSource) -> None:
    """Each moment has its own use; after the last one nothing changes any more."""
    read = [_cores(recorded.read()) for _ in range(len(recorded.documents))]

    assert len(read) > 3
    assert read[-3:] == sorted(
        read[-3:], key=lambda cores: cores if isinstance(cores, float) else 0
    )
    assert len(set(read[-3:])) == 3
    assert _cores(recorded.read()) == read[-1]


def test_stepping_stays_in_the_recording(recorded: top_replay.RecordingSource) -> None:
    """Back before the first moment is the first one."""
    recorded.read()
    recorded.step(2)
    assert recorded.moment == 2
    recorded.step(-9)
    assert recorded.moment == 0
    assert documents.rows(recorded.topology(), "cpus")


def test_arrows_and_clicks_on_the_time_bar_go_to_a_moment(archive: str, config: str) -> None:
    """One back, one on, or where the bar was clicked; it stops there until a space."""
    words = ("--replay", archive, "--config", config, "--every", "3600")
    terminal = test_top_terminal.Terminal(*words)
    try:
        terminal.until(" 1 of 4")
        for keys, moment in (
            *((b"\x1b[C", 2), (b"\x1b[C", 3), (b"\x1b[D", 2)),
            *((b"\x1b[<0;1;2M", 1), (b"\x1b[<0;60;2M", 4), (b"\x1b[D", 3)),
        ):
            terminal.text = ""
            terminal.press(keys)
            terminal.until(f" {moment} of 4")
        terminal.until("stopped")
        terminal.press(b"q")
        assert terminal.end() == 0
    finally:
        terminal.close()
