"""How readily the kernel kills each process, of groups that somebody asks about."""

from __future__ import annotations

from pathlib import Path

from koordlet.host.cgroup import hierarchies
from koordlet.host.process import oom_scores
from koordlet.host.recording import roots


def test_look(tmp_path: Path) -> None:
    """Nobody is read unless asked; who ended meanwhile is left out; again after a while."""
    files = {
        "proc/self/mountinfo": "32 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/cgroup.controllers": "memory\n",
        "sys/fs/cgroup/a/cgroup.procs": "7\n8\n",
        "proc/7/oom_score_adj": "-5\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = roots.open_root(str(tmp_path))
    layout, reader = hierarchies.discover(host, ""), oom_scores.OomScoreReader(host)

    assert reader.look(1.0, layout, ["a", "b"]) == {}
    reader.asked = True
    assert reader.look(1.0, layout, ["a", "b"]) == {"a": {7: -5}}
    (tmp_path / "proc/7/oom_score_adj").write_text("9\n")
    assert reader.look(2.0, layout, ["a", "b"]) == {"a": {7: -5}}
    assert reader.look(2.0, layout, ["a"]) == {"a": {7: 9}}
