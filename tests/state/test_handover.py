"""The deadline of a hand-over: it is never pushed away, and damage counts as passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.state import handover


def opened(ram: Path, boot: str = "b") -> handover.Handover:
    """The deadline file of one boot."""
    return handover.Handover(ram / "handover.json", boot)


def test_a_deadline_is_read_by_the_next_process(ram: Path) -> None:
    """What was recorded is found, until it is cleared."""
    opened(ram).record(100.0)
    deadline = opened(ram).read()
    opened(ram).clear()
    opened(ram).clear()

    assert (handover.Deadline("b", 100.0), None) == (deadline, opened(ram).read())


def test_a_crash_loop_does_not_push_it_away(ram: Path) -> None:
    """An earlier deadline stays; a later one is brought forward."""
    book = opened(ram)
    times = [book.record(at).boottime for at in (100.0, 200.0, 50.0)]

    assert times == [100.0, 100.0, 50.0]


def test_of_another_boot(ram: Path) -> None:
    """Groups do not survive a boot, so its deadline means nothing."""
    opened(ram).record(100.0)

    assert None is opened(ram, "other").read()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff",
        b'{"boot_id": "b"}',
        b'{"boot_id": "b", "boottime": "soon"}',
        b'{"boot_id": "b", "boottime": null}',
        b'{"boot_id": "b", "boottime": NaN}',
        b'{"boot_id": "b", "boottime": Infinity}',
    ],
)
def test_damage_counts_as_passed(ram: Path, content: bytes) -> None:
    """A file that cannot be understood means that the time is over: safe is without us."""
    (ram / "handover.json").write_bytes(content)
    deadline = opened(ram).read()

    assert deadline is not None
    assert deadline.boottime <= 0
