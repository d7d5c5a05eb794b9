"""The audit log: whole lines, bounded files, and never a reason to stop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from koordlet.state import audit


def lines(path: Path) -> list[dict[str, object]]:
    """The records of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_follow_each_other(ram: Path) -> None:
    """Each record is one line of JSON, in order, also from two writers."""
    first, other = audit.Audit(ram / "log" / "a"), audit.Audit(ram / "log" / "a")
    for number in range(4):
        (first, other)[number % 2].add({"n": number, "text": "ä\n\ud800"})
        (first, other)[number % 2].flush()

    assert [record["n"] for record in lines(ram / "log" / "a")] == [0, 1, 2, 3]


def test_the_log_is_bounded(ram: Path) -> None:
    """A full log moves aside once; both files together stay below twice the bound."""
    book = audit.Audit(ram / "a", lambda: 1000)
    for number in range(500):
        book.add({"n": number})
    book.flush()
    kept = [*lines(ram / "a.1"), *lines(ram / "a")]

    assert sum(path.stat().st_size for path in ram.iterdir()) <= 2000
    assert [*range(500 - len(kept), 500)] == [record["n"] for record in kept]
    assert book.lost == 0


def test_a_log_that_cannot_be_written_is_counted(ram: Path) -> None:
    """A directory in its place, or no place at all, costs lines and nothing else."""
    book = audit.Audit(ram / "a")
    (ram / "a").mkdir()
    book.add({"n": 1})
    book.add({"n": 2})
    book.flush()

    assert book.lost == 2


def test_a_pass_is_one_write(ram: Path) -> None:
    """Nothing is in the file until the pass is over; then all of it is."""
    book = audit.Audit(ram / "a")
    for number in range(1000):
        book.add({"n": number})
    before = (ram / "a").exists()
    book.flush()

    assert (before, len(lines(ram / "a"))) == (False, 1000)


def test_a_place_that_cannot_be_made_is_no_reason_not_to_start(ram: Path) -> None:
    """A file where the log's directory should be: lines are counted as lost, and come later."""
    (ram / "log").write_text("")
    book = audit.Audit(ram / "log" / "a")
    book.add({"n": 1})
    book.flush()
    (ram / "log").unlink()
    book.add({"n": 2})
    book.flush()

    assert (book.lost, [record["n"] for record in lines(ram / "log" / "a")]) == (1, [2])


_FULL = """
import resource, signal, sys
from pathlib import Path
from koordlet.state import audit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
book = audit.Audit(Path(sys.argv[1]))
book.add({"n": 1})
book.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (15, resource.RLIM_INFINITY))
book.add({"n": 2})
book.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
book.add({"n": 3})
book.flush()
print(book.lost)
"""


def test_a_full_disk_leaves_no_half_line(ram: Path) -> None:
    """A line that did not fit is gone as a whole; the next one is readable again."""
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(ram / "a")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )

    assert done.stdout.strip() == "1"
    assert [record["n"] for record in lines(ram / "a")] == [1, 3]
