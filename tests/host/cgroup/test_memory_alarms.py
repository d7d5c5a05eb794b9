"""What the kernel tells when memory grows short; tried on the real one in ``tests/e2e``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.cgroup import memory_alarms
from koordlet.host.fs import live_host

_MI = 1 << 20


@pytest.fixture
def alarms(tmp_path: Path) -> Iterator[memory_alarms.Alarms]:
    """Over a group of plain files, without a pressure file."""
    (tmp_path / "memory.usage_in_bytes").write_text("0\n")
    (tmp_path / "cgroup.event_control").touch()
    made = memory_alarms.Alarms(live_host.LiveHost(), str(tmp_path / "nowhere"))
    try:
        yield made
    finally:
        made.close()


def asked(top: Path) -> tuple[int, int]:
    """What the kernel was asked for: the descriptor that it shall tell on, and the use."""
    where, _, usage = (top / "cgroup.event_control").read_text().split()
    return int(where), int(usage)


def test_a_level_tells_once(tmp_path: Path, alarms: memory_alarms.Alarms) -> None:
    """It is heard, taken off, and set anew with the next tick."""
    alarms.set({str(tmp_path): 50 * _MI})
    where, usage = asked(tmp_path)
    assert usage == 50 * _MI
    assert not alarms.heard()
    os.eventfd_write(where, 1)

    assert alarms.heard()
    assert not alarms.heard()
    alarms.set({str(tmp_path): 50 * _MI})
    os.eventfd_write(asked(tmp_path)[0], 1)
    assert alarms.heard()


def test_a_level_moves_with_the_page_cache(tmp_path: Path, alarms: memory_alarms.Alarms) -> None:
    """By steps of a mebibyte; without a level it is off."""
    alarms.set({str(tmp_path): 50 * _MI})
    alarms.set({str(tmp_path): 50 * _MI + 1})
    assert asked(tmp_path)[1] == 50 * _MI
    alarms.set({str(tmp_path): 52 * _MI})
    assert asked(tmp_path)[1] == 52 * _MI
    where, _ = asked(tmp_path)
    alarms.set({})

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.eventfd_write(where, 1)


def test_what_cannot_be_had_is_said(tmp_path: Path, alarms: memory_alarms.Alarms) -> None:
    """No pressure file, a file that is none, a group that v2 counts: nothing is told, and why."""
    alarms.set({str(tmp_path / "gone"): _MI})
    plain = tmp_path / "plain"
    plain.write_text("")
    other = memory_alarms.Alarms(live_host.LiveHost(), str(plain))

    assert "No such file" in alarms.problems["pressure"]
    assert "No such file" in alarms.problems[str(tmp_path / "gone")]
    assert other.problems["pressure"]
    assert not alarms.heard()
    other.close()


def test_the_look_at_the_handle_takes_the_word_of_a_trigger(tmp_path: Path) -> None:
    """It rang although nothing is left to be seen; a pipe stands for the pressure file."""
    pressure = tmp_path / "memory"
    os.mkfifo(pressure)
    made = memory_alarms.Alarms(live_host.LiveHost(), str(pressure))

    assert made.heard()
    assert made.problems == {}
    made.close()
