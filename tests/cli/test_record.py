"""``koordlet record`` writes one archive that every read command accepts, or nothing."""

from __future__ import annotations

import argparse
import json
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import record
from koordlet.host import machine
from koordlet.host.recording import directory, roots
from koordlet.host.topology import discovery
from koordlet.model import errors
from tests.kit import machines


@dataclass
class Clock:
    """A clock that only waiting moves, and that changes a file of the machine while it waits."""

    tree: Path
    at: float = 100.0
    waits: list[float] = field(default_factory=list)
    stop_after: int = 1000

    def now(self) -> machine.Now:
        """Both clocks."""
        return machine.Now(at=self.at, wall=1_000_000 + self.at)

    def wait(self, seconds: float) -> None:
        """Move on."""
        if len(self.waits) >= self.stop_after:
            raise KeyboardInterrupt
        self.waits.append(seconds)
        self.at += seconds
        (self.tree / "proc" / "stat").write_text(f"cpu {len(self.waits)}\n", encoding="utf-8")

    def plan(self, seconds: float = 1.0, every: float = 1.0) -> record.Plan:
        """A plan by this clock."""
        return record.Plan(seconds=seconds, every=every, now=self.now, wait=self.wait)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine on disk."""
    files = machines.xeon_2s_smt2() | {"proc/stat": "cpu 0\n"}
    return machines.to_directory(files, tmp_path / "machine")


def names(path: Path) -> list[str]:
    """The members of an archive."""
    with tarfile.open(path) as archive:
        return archive.getnames()


def member(path: Path, name: str) -> list[str]:
    """The lines of one member."""
    with tarfile.open(path) as archive:
        file = archive.extractfile(name)
        assert file is not None
        return file.read().decode().splitlines()


def test_two_frames_a_second_apart(tree: Path, tmp_path: Path) -> None:
    """By default: the first state, then what changed within a second, then the manifest."""
    out, clock = tmp_path / "out.tar.gz", Clock(tree)

    summary = record.write(directory.DirHost(str(tree)), str(out), clock.plan())

    assert (clock.waits, summary.partition(", ")[2]) == ([1.0], "2 frames")
    assert names(out)[-3:] == ["frames/0.jsonl", "frames/1.jsonl", "manifest.json"]
    assert member(out, "root/proc/stat") == ["cpu 0"]
    when, change = (json.loads(line) for line in member(out, "frames/1.jsonl"))
    assert when == ({"frame": 1, "monotonic": 101.0, "wall": 1_000_101.0})
    assert change == ({"path": "/proc/stat", "text": "cpu 1\n"})


def test_frames_keep_to_the_schedule(tree: Path, tmp_path: Path) -> None:
    """``--for 1m --every 20s``: frames at 20, 40 and 60 s after the first state."""
    out, clock = tmp_path / "out.tar.gz", Clock(tree)

    record.write(directory.DirHost(str(tree)), str(out), clock.plan(60, 20))

    times = [json.loads(member(out, f"frames/{n}.jsonl")[0])["monotonic"] for n in range(4)]
    assert times == [100, 120, 140, 160]


def test_recording_is_a_root(tree: Path, tmp_path: Path) -> None:
    """The archive is the same machine to every read command."""
    out = tmp_path / "out.tar.gz"
    host = directory.DirHost(str(tree))

    record.write(host, str(out), Clock(tree).plan())

    assert discovery.discover(host) == discovery.discover(roots.open_root(str(out)))


def test_recording_of_a_recording(tree: Path, tmp_path: Path) -> None:
    """An archive can be recorded again, and is still the same machine."""
    first, second = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    record.write(directory.DirHost(str(tree)), str(first), Clock(tree).plan())

    record.write(roots.open_root(str(first)), str(second), Clock(tree).plan())

    assert discovery.discover(roots.open_root(str(first))) == discovery.discover(
        roots.open_root(str(second))
    )


def test_interrupt_keeps_what_there_is(tree: Path, tmp_path: Path) -> None:
    """Ctrl-C while waiting ends the recording early; the archive is complete."""
    out, clock = tmp_path / "out.tar.gz", Clock(tree, stop_after=2)

    summary = record.write(directory.DirHost(str(tree)), str(out), clock.plan(60, 1))

    assert summary.partition(", ")[2] == "3 frames"
    assert json.loads("".join(member(out, "manifest.json")))["frames"] == 3


def test_only_the_owner_may_read_it(tree: Path, tmp_path: Path) -> None:
    """What a machine looks like is its owner's to share."""
    out = tmp_path / "out.tar.gz"

    record.write(directory.DirHost(str(tree)), str(out), Clock(tree).plan())

    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_nothing_is_left_after_a_failure(tree: Path, tmp_path: Path) -> None:
    """An archive that could not be finished is not there, nor is half of it."""

    def broken(seconds: float) -> None:
        raise RuntimeError(seconds)

    plan = record.Plan(now=Clock(tree).now, wait=broken)
    (tmp_path / "out").mkdir()

    with pytest.raises(RuntimeError):
        record.write(directory.DirHost(str(tree)), str(tmp_path / "out" / "x.tar.gz"), plan)

    assert list((tmp_path / "out").iterdir()) == []


def test_place_that_cannot_be_written(tree: Path, tmp_path: Path) -> None:
    """A folder that does not exist is an error that names the archive."""
    out = str(tmp_path / "none" / "x.tar.gz")

    with pytest.raises(errors.HostError, match="cannot be written") as caught:
        record.write(directory.DirHost(str(tree)), out, Clock(tree).plan())

    assert out == caught.value.culprit
    assert "in a directory that exists" in caught.value.fix


@pytest.mark.parametrize(("seconds", "every"), [(1, 0.01), (1e6, 0.1)])
def test_schedule_that_makes_no_sense(
    tree: Path, tmp_path: Path, seconds: float, every: float
) -> None:
    """Too fast or too many frames is a usage error before anything is written."""
    out = tmp_path / "out.tar.gz"

    with pytest.raises(errors.UsageError):
        record.write(directory.DirHost(str(tree)), str(out), Clock(tree).plan(seconds, every))

    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "seconds"), [("1", 1), ("30s", 30), ("5m", 300), ("500ms", 0.5), ("1.5h", 5400)]
)
def test_duration(text: str, seconds: float) -> None:
    """A number with a unit; a bare number is seconds."""
    assert seconds == record.duration(text)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1d", "1e9s", "9" * 30, "nan"])
def test_no_duration(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(argparse.ArgumentTypeError):
        record.duration(text)


def test_command(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command records what ``--root`` names and says what it wrote, on stderr."""
    out = tmp_path / "out.tar.gz"

    status = cli.main(["record", str(out), "--root", str(tree), "--for", "0"])

    printed = capsys.readouterr()
    assert (status, printed.out) == (0, "")
    assert "1 frame" in printed.err
    assert "root/proc/stat" in names(out)


def test_now_is_when_it_was_recorded(tree: Path, tmp_path: Path) -> None:
    """With ``--now`` frames and files bear that time, and time goes on from there."""
    out = tmp_path / "out.tar.gz"
    words = ["record", str(out), "--root", str(tree), "--now", "1234567890"]

    status = cli.main([*words, "--for", "100ms", "--every", "100ms"])

    with tarfile.open(out) as archive:
        times = {int(member.mtime) for member in archive if member.name.startswith("root/")}
        frames = [archive.extractfile(f"frames/{number}.jsonl") for number in (0, 1)]
        walls = [json.loads(frame.readline())["wall"] for frame in frames if frame is not None]
    assert (status, times) == (0, {1234567890})
    assert [0 <= wall - 1234567890 < 60 for wall in walls] == [True, True]
    assert walls[1] - walls[0] >= 0.09
