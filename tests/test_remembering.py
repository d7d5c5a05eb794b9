"""What was learned survives restarts and boots; damage costs one part, with a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet import remembering
from koordlet.history import expectation
from koordlet.host import machine
from koordlet.state import checkpoint


def memory(
    models: expectation.Expectation, where: Path, boot: str, at: float
) -> remembering.Memory:
    """The memory of an agent that runs in this boot."""
    files = checkpoint.Checkpoints(where, machine_id="m", boot_id=boot)
    return remembering.Memory(models, files, lambda: machine.Now(at=at, wall=1000.0 + at))


def learned(number: int = 100) -> expectation.Expectation:
    """Models of so many subjects."""
    made = expectation.Expectation()
    for n in range(number):
        made.train(f"uid-{n}", 1.0, 1e9, 50.0)
    return made


def save(models: expectation.Expectation, where: Path) -> None:
    """As many ticks as it takes to save every part once."""
    saving = memory(models, where, "boot-1", 60.0)
    for _ in range(40 * expectation.PARTS):
        saving.tick()


def test_over_a_boot(tmp_path: Path) -> None:
    """All models are back after a restart of the machine."""
    save(learned(), tmp_path)
    back = expectation.Expectation()

    assert [] == memory(back, tmp_path, "boot-2", 5.0).revive()
    assert 100 == len(back)


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"{}", b'{"format": 1}', b"\xff\xfe", b"[" * 100_000]
)
def test_damage_costs_one_part(tmp_path: Path, damage: bytes) -> None:
    """A part that is no part is discarded and said; the others are taken."""
    save(learned(), tmp_path)
    (tmp_path / "expectation-03.json").write_bytes(damage)
    back = expectation.Expectation()
    problems = memory(back, tmp_path, "boot-2", 5.0).revive()

    assert 1 == len(problems)
    assert "expectation-03" in problems[0]
    assert 80 < len(back) < 100


def test_truncated_anywhere(tmp_path: Path) -> None:
    """A part that was cut short anywhere is refused or whole, and never breaks the start."""
    save(learned(1), tmp_path)
    path = next(tmp_path.glob("expectation-*.json"))
    whole = path.read_bytes()
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        assert 1 == len(memory(expectation.Expectation(), tmp_path, "boot-1", 60.0).revive())


def test_nothing_is_written_for_nobody(tmp_path: Path) -> None:
    """Without workloads there are no files; who is gone goes from his file."""
    models = expectation.Expectation()
    save(models, tmp_path)
    assert [] == list(tmp_path.iterdir())

    models.train("uid-1", 1.0, 1.0, 50.0)
    save(models, tmp_path)
    models.forget(10_000.0)
    save(models, tmp_path)
    back = expectation.Expectation()
    assert [] == memory(back, tmp_path, "boot-1", 60.0).revive()
    assert 0 == len(back)
