"""Interrupts and work queues: what can be written, and what it says."""

from __future__ import annotations

from pathlib import Path

from koordlet.host.recording import directory
from koordlet.host.topology import kernel_work


def test_what_can_be_written_is_read(tmp_path: Path) -> None:
    """In the order of numbers; without what the kernel manages itself or what is gone."""
    for number in (24, 9, 30):
        (tmp_path / f"proc/irq/{number}").mkdir(parents=True)
    for number, text in ((24, "2-3\n"), (9, "0-7\n"), (30, "5\n")):
        (tmp_path / f"proc/irq/{number}/smp_affinity_list").write_text(text)
    (tmp_path / "proc/irq/30/smp_affinity_list").chmod(0o444)
    (tmp_path / "proc/irq/default_smp_affinity").write_text("ff\n")
    (tmp_path / "proc/irq/31").mkdir()
    files = kernel_work.read(directory.DirHost(str(tmp_path)))

    assert list(files.items()) == [
        ("/proc/irq/9/smp_affinity_list", "0-7"),
        ("/proc/irq/24/smp_affinity_list", "2-3"),
        ("/proc/irq/default_smp_affinity", "ff"),
    ]


def test_a_machine_without_them(tmp_path: Path) -> None:
    """Nothing is there, and nothing is wrong."""
    assert kernel_work.read(directory.DirHost(str(tmp_path))) == {}
