"""What was learned survives restarts and boots; damage costs one part, with a word."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from koordlet.agent import saved_history
from koordlet.history import expectation, series
from koordlet.host import machine
from koordlet.model import meter
from koordlet.state import checkpoint
from tests.kit import counting, pasts


def memory(
    models: expectation.Expectation, where: Path, boot: str, at: float
) -> saved_history.SavedHistory:
    """The memory of an agent that runs in this boot."""
    known = series.History()
    known.expectation = models
    return remembered(known, where, boot, at)


def remembered(
    known: series.History, where: Path, boot: str, at: float, suspended: float = 0.0
) -> saved_history.SavedHistory:
    """The same of a whole history."""
    files = checkpoint.Checkpoints(where, machine_id="m", boot_id=boot)
    now = machine.Now(at=at, wall=1000.0 + at, suspended=suspended)
    return saved_history.SavedHistory(known, files, lambda: now)


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


def test_models_are_back_after_a_boot(tmp_path: Path) -> None:
    """All models are back after a restart of the machine."""
    save(learned(), tmp_path)
    back = expectation.Expectation()

    assert memory(back, tmp_path, "boot-2", 5.0).revive() == []
    assert len(back) == 100


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"{}", b'{"format": 1}', b"\xff\xfe", b"[" * 100_000]
)
def test_damage_costs_one_part(tmp_path: Path, damage: bytes) -> None:
    """A part that is no part is discarded and said; the others are taken."""
    save(learned(), tmp_path)
    (tmp_path / "expectation-03.json").write_bytes(damage)
    back = expectation.Expectation()
    problems = memory(back, tmp_path, "boot-2", 5.0).revive()

    assert len(problems) == 1
    assert "expectation-03" in problems[0]
    assert 80 < len(back) < 100


def test_truncated_anywhere(tmp_path: Path) -> None:
    """A part that was cut short anywhere is refused or whole, and never breaks the start."""
    save(learned(1), tmp_path)
    path = next(tmp_path.glob("expectation-*.json"))
    whole = path.read_bytes()
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        assert len(memory(expectation.Expectation(), tmp_path, "boot-1", 60.0).revive()) == 1


def test_nothing_is_written_for_nobody(tmp_path: Path) -> None:
    """Without workloads there are no files; who is gone goes from his file."""
    models = expectation.Expectation()
    save(models, tmp_path)
    assert list(tmp_path.iterdir()) == []

    models.train("uid-1", 1.0, 1.0, 50.0)
    save(models, tmp_path)
    models.forget(10_000.0)
    save(models, tmp_path)
    back = expectation.Expectation()
    assert memory(back, tmp_path, "boot-1", 60.0).revive() == []
    assert len(back) == 0


USE = {meter.CPU: 1.5, meter.WORKING_SET: 2.0**30}
POD = {meter.CPU: 0.25, meter.MEMORY_ANON: 2.0**20}


def used() -> series.History:
    """Five minutes of a node and two pods, until second 1000."""
    groups = {"a": POD, "b": {meter.CPU: 0.5, meter.MEMORY_ANON: 2.0**21}}
    return pasts.past(node=USE, groups=groups, until=1000.0, seconds=300)


def seen_again(known: series.History, at: float, suspended: float = 0.0) -> None:
    """The first look of a new agent: another order of groups, and one that is new."""
    groups = {meter.CPU: [0.0, 0.0, 0.0], meter.MEMORY_ANON: [1.0, 1.0, 1.0]}
    readings = {
        "node": counting.reading(at, {meter.CPU: [0.0]}, names=("",)),
        "groups": counting.reading(at, groups, names=("new", "b", "a")),
    }
    known.take(
        {
            name: dataclasses.replace(reading, suspended=suspended)
            for name, reading in readings.items()
        }
    )


def test_samples_are_there_again_after_a_restart(tmp_path: Path) -> None:
    """The windows of node and groups are those of before, less the time between two agents."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()
    back = series.History()

    assert remembered(back, tmp_path, "boot-1", 1010.0).revive() == []
    seen_again(back, 1010.0)
    whole = back.node.window("", meter.CPU, 1010.0, 300.0)
    assert whole is not None
    assert pytest.approx(whole.average, rel=1e-4) == 1.5
    assert 285 <= whole.covered <= 295
    for name, cores in (("a", 0.25), ("b", 0.5)):
        window = back.groups.window(name, meter.CPU, 1010.0, 300.0)
        assert window is not None
        assert cores == pytest.approx(window.average, rel=1e-4)
    assert back.groups.window("new", meter.CPU, 1010.0, 300.0) is None


def test_samples_age_while_nobody_looks(tmp_path: Path) -> None:
    """Down for longer than half a window, suspended or not: there is no window any more."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()
    for at, suspended in ((1200.0, 0.0), (1001.0, 200.0)):
        back = series.History()
        assert remembered(back, tmp_path, "boot-1", at, suspended).revive() == []
        seen_again(back, at, suspended)
        assert back.node.window("", meter.CPU, at, 300.0) is None


@pytest.mark.parametrize(("suspended", "good"), [(-1e-6, True), (-1.0, False)])
def test_clocks_waver_and_do_not_run_back(tmp_path: Path, suspended: float, *, good: bool) -> None:
    """Time in suspend is a difference of two clocks: a little less than before is the same."""
    remembered(used(), tmp_path, "boot-1", 1000.0).close()
    problems = remembered(series.History(), tmp_path, "boot-1", 1010.0, suspended).revive()

    assert good is (problems == [])


def test_samples_of_another_boot_are_nobodys(tmp_path: Path) -> None:
    """Another clock and other groups: they are discarded, and it is said."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()

    (problem,) = remembered(series.History(), tmp_path, "boot-2", 5.0).revive()
    assert "for another boot" in problem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("at", [2e9] * 300),
        ("at", ["x"]),
        ("at", [float("inf")] * 300),
        ("span", []),
        ("subjects", [1]),
        ("cells", "AAAA"),
        ("cells", "!"),
        ("", 5),
    ],
)
def test_damaged_samples_cost_themselves(tmp_path: Path, key: str, value: object) -> None:
    """A file that makes no sense is discarded as a whole, and it is said."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()
    where = tmp_path / "samples.json"
    body = json.loads(where.read_text())
    columns = body["state"]["spaces"]["node"]
    if key:
        columns["cpu"][key] = value
    else:
        columns["cpu"] = value
    where.write_text(json.dumps(body))
    back = series.History()

    (problem,) = remembered(back, tmp_path, "boot-1", 1010.0).revive()
    assert "samples" in problem
    seen_again(back, 1010.0)
    assert back.groups.window("a", meter.CPU, 1010.0, 300.0) is None
