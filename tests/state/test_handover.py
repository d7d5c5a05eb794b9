"""The hand-over deadline: recorded once, for this boot, and safe when damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.state import handover


@pytest.fixture
def deadline(tmp_path: Path) -> handover.Handover:
    """Of this boot."""
    return handover.Handover(tmp_path / "handover.json", "this boot")


def test_only_an_earlier_one_replaces_it(deadline: handover.Handover) -> None:
    """A crash loop never pushes its deadline away; clearing makes room for a new one."""
    recorded = [deadline.record(at).boottime for at in (200.0, 300.0, 150.0)]
    deadline.clear()

    assert [200.0, 200.0, 150.0] == recorded
    assert deadline.read() is None
    assert 300.0 == deadline.record(300.0).boottime


def test_one_of_another_boot_is_none(deadline: handover.Handover) -> None:
    """After a boot there is nothing to hand over, and the clock has started anew."""
    handover.Handover(deadline.path, "another boot").record(5.0)

    assert deadline.read() is None
    assert 200.0 == deadline.record(200.0).boottime


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b"\xff", b'{"boot_id": 1}'])
def test_a_damaged_one_has_passed(deadline: handover.Handover, damage: bytes) -> None:
    """What cannot be read must not keep limits in place for ever."""
    deadline.path.write_bytes(damage)

    assert handover.Deadline("this boot", 0.0) == deadline.read()
