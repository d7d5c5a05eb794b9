"""Journals of other versions of koordlet, and of agents below another cgroup root."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from koordlet.model import errors
from koordlet.state import journal
from tests.state.test_journal import entry, opened, reread


def older(path: Path) -> dict[str, journal.Entry]:
    """A journal as the first version wrote it: no cgroup root, nothing about certainty."""
    lines = [
        {"boot_id": "b", "format": 1, "machine_id": "m"},
        {"boot_id": "b", "format": 1, "machine_id": "m"},
        *(
            {"intent": {k: v for k, v in known._asdict().items() if k in _FIRST}}
            for known in (entry(1), entry(2))
        ),
        {"done": {"target": entry(1).target, "value": "1", "inode": 1}},
    ]
    path.write_bytes(b"".join(checked(line) for line in lines))
    return {known.target: known for known in (entry(1, sure=True), entry(2))}


_FIRST = ["kind", "target", "policy", "original", "values", "knob", "group", "inode", "unix_time"]


def checked(record: object) -> bytes:
    """A record with its checksum."""
    body = json.dumps(record).encode()
    return b"\n%s\t%08x\n" % (body, zlib.crc32(body))


def test_an_older_format_is_read_and_written_anew(ram: Path) -> None:
    """After an upgrade every original is still there, in the new format from then on."""
    path = ram / "journal"
    kept = older(path)
    book = reread(path)

    assert (kept, []) == (book.entries, book.damage)
    assert b'"format":1' not in path.read_bytes()
    assert kept == reread(path).entries


def test_a_newer_format_is_refused(ram: Path) -> None:
    """After a downgrade nothing is lost: the start is refused, naming the file and what to do."""
    path = ram / "journal"
    text = checked({"format": 3, "machine_id": "m", "boot_id": "b"}) * 2
    path.write_bytes(text)
    with pytest.raises(errors.HostError, match="newer koordlet") as refused:
        opened(path)

    assert (str(path), text) == (refused.value.culprit, path.read_bytes())
    assert "koordlet restore" in refused.value.fix
    assert reread_as(path, boot="another") == {}, "of another boot nothing in it matters"


def reread_as(path: Path, *, boot: str) -> dict[str, journal.Entry]:
    """What a process of another boot finds."""
    book = opened(path, boot=boot)
    book.close()
    return dict(book.entries)


def test_the_cgroup_root_is_remembered_with_the_entries(ram: Path) -> None:
    """Groups are named below a root: while there are entries, that of the file holds."""
    path = ram / "journal"
    book = journal.Journal(path, machine_id="m", boot_id="b", root="kind")
    book.intend([entry(1)])
    with pytest.raises(errors.BugError):
        book.move("")
    book.close()
    book = opened(path)
    root = book.root
    book.forget(entry(1).target)
    book.move("")
    book.close()

    assert (root, reread(path).root) == ("kind", "")
