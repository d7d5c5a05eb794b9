"""Reads are remembered with their answers, and nothing can be written through the log."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from koordlet.host.fs import live_host, root
from koordlet.host.recording import directory, read_log


@pytest.fixture
def log(tmp_path: Path) -> read_log.ReadLog:
    """A machine of two files."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_text("cpu 1\n")
    (tmp_path / "proc" / "loadavg").write_text("0\n")
    return read_log.ReadLog(directory.DirHost(str(tmp_path)))


def at(path: str) -> root.HostPath:
    """A path on the machine."""
    return root.HostRoot.at(path)


def test_each_read_is_remembered_with_its_answer(log: read_log.ReadLog) -> None:
    """Read, listed, looked for; what is absent has its errno."""
    assert log.text(at("/proc/stat")) == "cpu 1\n"
    assert log.list(at("/proc")) == ["loadavg", "stat"]
    assert not log.exists(at("/proc/gone"))
    assert log.answers == {"/proc/stat": 0, "/proc": 0, "/proc/gone": errno.ENOENT}


def test_a_kept_descriptor_is_a_read_of_its_file(log: read_log.ReadLog) -> None:
    """Also in a later pass, which opens nothing: a file that went is told then."""
    handles = [log.open(at(f"/proc/{name}")) for name in ("stat", "loadavg")]
    log.answers.clear()

    assert log.pread(handles[0], 99) == b"cpu 1\n"
    assert log.preads(handles, 99) == [b"cpu 1\n", b"0\n"]
    assert log.answers == {"/proc/stat": 0, "/proc/loadavg": 0}
    for handle in handles:
        log.close(handle)


@pytest.mark.parametrize("change", ["write", "mkdir", "rmdir", "mount", "unmount"])
def test_every_change_is_refused(log: read_log.ReadLog, change: str, tmp_path: Path) -> None:
    """On any machine, the live one as well."""
    more: dict[str, tuple[object, ...]] = {
        "write": (at("/proc/stat"), b"x"),
        "mount": ("none", at("/proc"), "resctrl", ""),
    }
    with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
        getattr(log, change)(*more.get(change, (at("/proc/new"),)))

    assert (tmp_path / "proc" / "stat").read_text() == "cpu 1\n"


def test_it_is_as_live_as_the_machine_that_it_reads(log: read_log.ReadLog) -> None:
    """Whether file systems and sources are asked depends on it."""
    assert not log.live
    assert read_log.ReadLog(live_host.LiveHost()).live
