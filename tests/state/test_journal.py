"""The journal keeps every original through damage, full disks, compaction and other boots."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.state import journal
from tests.kit import search


def entry(number: int, **changes: Any) -> journal.Entry:
    """One target with its original."""
    base = journal.Entry(
        kind="WriteFile",
        target=f"/sys/fs/cgroup/g{number}/cpuset.cpus",
        policy="shared_pools",
        original=f"0-{number}",
        values=("1",),
        knob="cpuset.cpus",
        group=f"g{number}",
        inode=number,
    )
    return base._replace(**changes)


def opened(path: Path, *, machine: str = "m", boot: str = "b") -> journal.Journal:
    """The journal of one machine and boot."""
    return journal.Journal(path, machine_id=machine, boot_id=boot)


def written(path: Path, count: int) -> dict[str, journal.Entry]:
    """A closed journal with so many entries; what it holds."""
    book = opened(path)
    book.intend(entry(number) for number in range(count))
    book.close()
    return dict(book.entries)


def reread(path: Path) -> journal.Journal:
    """What the next process finds; its descriptor is given back."""
    book = opened(path)
    book.close()
    return book


def test_originals_survive_the_process(ram: Path) -> None:
    """What was intended is there after the process, whole and without complaint."""
    kept = written(ram / "journal", 3)
    book = reread(ram / "journal")

    assert kept == book.entries
    assert book.damage == []


def test_nothing_left_leaves_no_file(ram: Path) -> None:
    """That there is a journal says that something is to be put back, to whoever only looks."""
    path = ram / "journal"
    book = opened(path)
    book.intend([entry(1)])
    book.close()
    assert path.exists()
    book = opened(path)
    book.forget(entry(1).target)
    book.close()
    assert not path.exists()


def test_done_narrows_to_the_value_that_was_read_back(ram: Path) -> None:
    """After a write our only value is the one that the kernel shows."""
    book = opened(ram / "journal")
    book.intend([entry(1, values=("1", "2", "3"))])
    book.done(entry(1).target, "3", inode=7)
    book.flush()
    book.close()

    known = reread(ram / "journal").entries[entry(1).target]
    assert (known.values, known.inode, known.original) == (("3",), 7, "0-1")


def test_values_on_the_way_are_not_ours_after_a_restart(ram: Path) -> None:
    """What was read back is the only value of ours for the next process, in the same group too."""
    book = opened(ram / "journal")
    book.intend([entry(1, values=("1-3", "3"))])
    book.done(entry(1).target, "3", inode=entry(1).inode)
    book.flush()
    book.close()

    assert reread(ram / "journal").entries[entry(1).target].values == ("3",)


def test_forgotten_targets_stay_forgotten(ram: Path) -> None:
    """A target that was put back is not there after the next start; forgetting twice is once."""
    book = opened(ram / "journal")
    book.intend([entry(1), entry(2)])
    book.forget(entry(1).target)
    book.flush()
    size = book.path.stat().st_size
    book.forget(entry(1).target)
    book.flush()
    book.close()

    assert size == book.path.stat().st_size
    assert [entry(2).target] == list(reread(book.path).entries)


def test_cut_at_any_byte_costs_only_what_was_cut(ram: Path) -> None:
    """A file that ends in the middle of a record holds every record before it, and takes more."""
    path = ram / "journal"
    written(path, 3)
    whole = path.read_bytes()
    head = whole.index(b"intent")
    for size in range(head, len(whole)):
        path.write_bytes(whole[:size])
        complete = whole[:size].count(b"\n{", head) if whole[size : size + 1] != b"\n" else None
        book = opened(path)
        survivors = len(book.entries)
        book.intend([entry(9)])
        book.close()
        after = reread(path)
        assert survivors + 1 == len(after.entries)
        assert entry(9) == after.entries[entry(9).target]
        assert after.damage == []
        if complete is None:
            assert survivors >= 1


TAILS = (b"", b"\x00" * 512, b"\xff\n\n{", b'{"intent":{"target":"/x"}}\t00000000\n', b"\n" * 9)


@pytest.mark.parametrize("tail", TAILS)
def test_cut_at_every_byte_and_with_garbage_behind(ram: Path, tail: bytes) -> None:
    """Wherever a power cut ends the file, and whatever blocks it leaves: the start repairs it."""
    path = ram / "journal"
    kept = written(path, 3)
    whole = path.read_bytes()
    ends = [n for n, byte in enumerate(whole) if byte == ord("\n") and whole[n - 1] != byte]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size] + tail)
        entries = reread(path).entries
        # Two headers first; a record counts once its newline, or at least its checksum, is there.
        complete = max(0, sum(end < size for end in ends) - 2)
        assert complete <= len(entries) <= complete + 1, size
        assert entries.items() <= kept.items()
        again = reread(path)
        assert ([], entries) == (again.damage, again.entries), size


@search.examples(100)
@hypothesis.given(data=st.data())
def test_one_damaged_byte_costs_at_most_one_record(ram: Path, data: st.DataObject) -> None:
    """Whichever byte is damaged, also of the header or between records, one record is lost."""
    path = Path(tempfile.mkdtemp(dir=ram)) / "journal"
    kept = written(path, 4)
    raw = bytearray(path.read_bytes())
    where = data.draw(st.integers(0, len(raw) - 1))
    raw[where] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    entries = reread(path).entries

    lost = kept.keys() - entries.keys()
    assert len(lost) <= 1
    assert {target: kept[target] for target in kept.keys() - lost} == entries


def test_every_single_bit_of_the_header_may_flip(ram: Path) -> None:
    """A damaged header does not make the originals unreadable: its copy stands in."""
    path = ram / "journal"
    kept = written(path, 2)
    whole = path.read_bytes()
    for where in range(whole.index(b"intent")):
        raw = bytearray(whole)
        raw[where] ^= 0x20
        path.write_bytes(raw)
        assert kept.keys() <= reread(path).entries.keys() | {entry(0).target}, where


def test_damage_is_named_and_removed(ram: Path) -> None:
    """The line of a damaged record is said once; the file is clean afterwards."""
    path = ram / "journal"
    written(path, 3)
    path.write_bytes(path.read_bytes().replace(b'"g1"', b'"gX"'))
    first, second = reread(path), reread(path)

    assert len(first.damage) == 1
    assert "damaged record skipped" in first.damage[0]
    assert second.damage == []
    assert len(second.entries) == 2


def test_a_journal_of_another_boot_is_dropped(ram: Path) -> None:
    """Groups do not survive a boot, so there is nothing to put back, and nothing is said."""
    path = ram / "journal"
    written(path, 2)
    book = opened(path, boot="another")
    book.close()

    assert book.entries == {}
    assert book.damage == []
    assert reread(path).entries == {}


@pytest.mark.parametrize(
    "content", [b"hello\nworld\n", b"\x00\xff" * 99, b'{"format":99}\tffffffff\n']
)
def test_what_is_no_journal_is_kept_for_a_person(ram: Path, content: bytes) -> None:
    """An unreadable file is set aside under another name, said, and a fresh one begun."""
    path = ram / "journal"
    path.write_bytes(content)
    book = reread(path)

    assert content == (ram / "journal.damaged").read_bytes()
    assert len(book.damage) == 1
    assert reread(path).damage == []


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_a_new_journal(ram: Path, content: bytes) -> None:
    """A file without records is begun anew, whatever left it there."""
    path = ram / "journal"
    path.write_bytes(content)
    kept = written(path, 1)

    assert kept == reread(path).entries


def test_the_file_stays_bounded(ram: Path) -> None:
    """Thousands of changes to few targets leave a short file with the same facts."""
    book = opened(ram / "journal")
    book.intend([entry(0), entry(1), entry(2)])
    for number in range(3000):
        book.done(entry(number % 3).target, f"0-{number}", inode=1)
        book.flush()
    book.close()

    assert book.path.read_bytes().count(b"\n{") < 300
    assert book.entries == reread(book.path).entries


def test_a_hundred_thousand_plans_leave_a_short_file(ram: Path) -> None:
    """Whatever the number of plans, the file stays below four records and a bit for each entry."""
    book = opened(ram / "journal")
    record = 400
    longest = 0
    for number in range(100_000):
        wanted = entry(number % 7, values=(str(number),))
        book.intend([wanted])
        book.done(wanted.target, f"{number}\n", inode=1)
        if number % 3 == 0:
            book.forget(wanted.target)
        if number % 97 == 0:
            longest = max(longest, book.path.stat().st_size)
    book.flush()
    book.close()

    assert 300 * record > longest
    assert book.entries == reread(book.path).entries


def test_what_is_known_already_is_not_written_again(ram: Path) -> None:
    """A value that comes back at every pass costs neither room nor an fsync."""
    book = opened(ram / "journal")
    book.intend([entry(1)])
    size = book.path.stat().st_size
    book.intend([entry(1)])
    book.done(entry(1).target, "1", inode=1)
    book.flush()
    book.close()

    assert size == book.path.stat().st_size
    assert book.entries[entry(1).target].sure


def test_intents_survive_the_compaction_that_they_cause(ram: Path) -> None:
    """An intent is on disk also when its own arrival has the file written anew."""
    book = opened(ram / "journal")
    for number in range(400):
        fresh = entry(number)
        book.intend([fresh])
        assert fresh.target.encode() in book.path.read_bytes(), number
        book.forget(fresh.target)
    book.close()


def test_appends_after_compaction_reach_the_new_file(ram: Path) -> None:
    """The descriptor follows the file that took the old one's name."""
    book = opened(ram / "journal")
    book.intend([entry(1)])
    book.compact()
    book.intend([entry(2)])
    book.close()

    assert {entry(1).target, entry(2).target} == set(reread(book.path).entries)
    assert list(ram.glob("*.new")) == []


_FULL = """
import resource, signal, sys
from tests.state.test_journal import entry, opened
from pathlib import Path
book = opened(Path(sys.argv[1]))
book.intend([entry(1)])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
room = book.path.stat().st_size + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
try:
    book.intend([entry(2), entry(3)])
except OSError as error:
    print("refused", error.errno)
book.forget(entry(1).target)
print("lost", book.lost, sorted(book.entries))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
"""


@pytest.mark.parametrize("room", [0, 1, 100, 300])
def test_a_full_disk_leaves_no_half_record(ram: Path, room: int) -> None:
    """An intent that does not fit is refused and leaves the file as it was; notes are only lost."""
    path = ram / "journal"
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(path), str(room)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    book = reread(path)

    assert "refused 27" in done.stdout, done.stderr
    assert "lost" in done.stdout
    assert book.damage == []
    assert set(book.entries) <= {entry(1).target}


def test_two_batches_are_both_there(ram: Path) -> None:
    """Appends of one process follow each other, never over each other."""
    book = opened(ram / "journal")
    book.intend([entry(1)])
    book.intend([entry(2)])
    book.flush()

    assert {entry(1).target, entry(2).target} == set(reread(book.path).entries)
    book.close()


def test_what_was_read_back_is_written_where_nothing_newer_is(ram: Path) -> None:
    """A flush without readings leaves them for later; the next intent for a target replaces its."""
    book = opened(ram / "journal")
    book.intend([entry(1, values=("1", "2")), entry(2, values=("1", "2"))])
    book.done(entry(1).target, "2", inode=1)
    book.done(entry(2).target, "2", inode=2)
    before = book.path.read_bytes()
    book.flush(readings=False)
    assert before == book.path.read_bytes()
    book.intend([book.entries[entry(1).target].holding(("2", "3"))])
    book.flush()
    written = book.path.read_bytes().removeprefix(before)
    book.close()

    assert (written.count(b'{"intent"'), written.count(b'{"done"')) == (1, 1)
    values = {target: known.values for target, known in reread(book.path).entries.items()}
    assert {entry(1).target: ("2", "3"), entry(2).target: ("2",)} == values


def test_its_groups_are_one_object_while_none_comes_or_goes(ram: Path) -> None:
    """Whoever asks at every tick touches none of a thousand entries."""
    book = opened(ram / "journal")
    book.intend([entry(1), entry(2), entry(1)._replace(target="/other")])
    first = book.groups
    book.done(entry(1).target, "1", 1)
    assert first is book.groups
    assert first == ("g1", "g2")

    book.note(entry(3))
    book.forget(entry(1).target)
    assert {*book.groups} == {"g1", "g2", "g3"}
    book.forget("/other")
    book.remember([entry(4)])
    assert {*book.groups} == {"g2", "g3", "g4"}
    book.close()

    assert reread(ram / "journal").groups == ("g2", "g3")
