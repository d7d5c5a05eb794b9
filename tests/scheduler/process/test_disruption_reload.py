"""The limits of evictions follow their file, and a bad one costs itself."""

from __future__ import annotations

from pathlib import Path

from koordlet.scheduler.disruption import settings
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.process.disruption_reload import DisruptionReload


def _document(per_minute: str) -> str:
    head = f"apiVersion: {settings.API_VERSION}\nkind: {settings.KIND}\n"
    return f"{head}limiter: {{perMinute: {per_minute}}}\n"


def test_a_change_is_taken_when_it_has_held_still_and_a_bad_one_is_not(tmp_path: Path) -> None:
    """Read by the second look; an unknown word, a file that is gone and its return."""
    path, taken = tmp_path / "config.yaml", list[DisruptionSettings]()
    path.write_text(_document("4"))
    reload = DisruptionReload(path, DisruptionSettings(), taken.append)
    reload.look()
    assert taken == []
    path.write_text(_document("77"))
    reload.look()
    assert taken == []
    reload.look()
    assert [each.per_minute for each in taken] == [77]
    path.write_text(_document("many"))
    for _ in range(3):
        reload.look()
    path.unlink()
    for _ in range(3):
        reload.look()
    assert len(taken) == 1
    path.write_text(_document("123"))
    for _ in range(3):
        reload.look()
    assert [each.per_minute for each in taken] == [77, 123]
