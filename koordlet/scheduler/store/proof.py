"""Checksums of rows: damage by the disk is found, and costs only the damaged row.

Covers: the checksum of each kind of row, looking at all of a file, what can be saved of it.
Does not cover: when that is done (``database``), statements of a running store (``rows``).

SQLite proves its pages, not what they hold: a byte that changes inside of a text changes an object,
or makes it one that nobody can read, and ``quick_check`` is content.

Rules:
1. Each row of ``objects``, ``events`` and ``clock`` carries a CRC-32 of all its other columns.
2. A row that does not prove itself is none. One in ``objects`` is lost, by name; a damaged event
   or clock costs the history: who watches lists again.
3. What is saved is written to a new file, row by row: in the old one a changed key may keep others
   from being found. It must be certain that no row is missing: where SQLite itself finds the pages
   of ``objects`` damaged, nothing is saved.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Iterator

from koordlet.model.record import dataclass

#: Of texts that are no UTF-8 any more: they are read, and do not prove themselves.
_REPLACED = "replace"
#: SQLite's own refusal, and Python's of a name in a schema that is no UTF-8 any more.
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
#: Said of a value that is not of its column's type: its row does not prove itself either.
_VALUE = re.compile(r"[\w-]+ value in objects\.")
#: Revisions that nobody can have seen, where it is not known which is the newest.
_BEYOND = 1_000_000


def checksum(*columns: object) -> int:
    """The checksum of a row, from its other columns."""
    return zlib.crc32("\0".join(map(str, columns)).encode("utf-8", "surrogatepass"))


def sealed(*columns: object) -> tuple[object, ...]:
    """A row with its checksum, to be written."""
    return (*columns, checksum(*columns))


def lenient(data: bytes) -> str:
    """The ``text_factory`` of a connection: a byte that is no UTF-8 must not fail the statement."""
    return data.decode("utf-8", _REPLACED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The damage found in a file."""

    #: Objects whose rows do not prove themselves, as far as they can still be named.
    lost: tuple[str, ...] = ()
    #: What else is wrong.
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((*(f"lost: {name}" for name in self.lost), *self.others))

    def __bool__(self) -> bool:
        return bool(self.lost or self.others)


def look(db: sqlite3.Connection) -> Damage:
    """Verify a whole file; ``DatabaseError`` where the objects cannot be saved."""
    others = [f"pages: {problem}" for problem in _structure(db)]
    if others:
        for problem in _structure(db, "objects"):
            if not _VALUE.match(problem):
                raise sqlite3.DatabaseError(problem)
    count, lost = 0, []
    for row in db.execute("SELECT * FROM objects"):
        count += 1
        if not proves(row):
            lost.append(f"{row[0]!s:.60} {row[1]!s:.60}/{row[2]!s:.100}")
    if len(lost) > 1 and len(lost) > count // 2:
        raise sqlite3.DatabaseError(f"{len(lost)} of {count} objects are damaged")
    if not others:
        bad = sum(not proves(row) for row in db.execute("SELECT * FROM events"))
        others += [f"{bad} events"] if bad else []
    if _clock(db) is None:
        others.append("the revision counter")
    return Damage(lost=tuple(lost), others=tuple(others))


def check(db: sqlite3.Connection) -> None:
    """``DatabaseError`` where anything at all is damaged."""
    if damage := look(db):
        raise sqlite3.DatabaseError(str(damage))


def save(db: sqlite3.Connection, fresh: sqlite3.Connection) -> int:
    """Copy all intact rows to an empty store; the revision that it begins with."""
    clock = _clock(db)
    # Somebody may have seen a later one than any object has.
    revision = _BEYOND if clock is None else clock[0]
    for row in db.execute("SELECT * FROM objects"):
        if proves(row):
            fresh.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", row)
            revision = max(revision, row[3] + _BEYOND if clock is None else 0)
    set_clock(fresh, revision, revision)
    return revision


def _clock(db: sqlite3.Connection) -> tuple[int, int] | None:
    """The row of the revision counter, where it is intact."""
    try:
        rows = db.execute("SELECT * FROM clock").fetchall()
    except UNREADABLE:
        return None
    return rows[0][:2] if len(rows) == 1 and proves(rows[0]) else None


def set_clock(db: sqlite3.Connection, revision: int, compacted: int) -> None:
    """Write the one row of ``clock``."""
    db.execute(
        "UPDATE clock SET revision = ?, compacted = ?, checksum = ?",
        (revision, compacted, checksum(revision, compacted)),
    )


def seal(db: sqlite3.Connection) -> None:
    """Give rows of before there were checksums theirs; what nobody can read stays without."""
    rows = db.execute("SELECT kind, namespace, name, revision, body FROM objects")
    sealed = [(checksum(*row), *row[:3]) for row in rows if _is_object(row[4])]
    db.executemany(
        "UPDATE objects SET checksum = ? WHERE kind = ? AND namespace = ? AND name = ?", sealed
    )
    rows = db.execute("SELECT revision, kind, namespace, before, after FROM events")
    sealed = [(checksum(*row), row[0]) for row in rows]
    db.executemany("UPDATE events SET checksum = ? WHERE revision = ?", sealed)
    for row in db.execute("SELECT revision, compacted FROM clock").fetchall():
        set_clock(db, *row)


def _is_object(body: object) -> bool:
    """Whether a row without a checksum holds an object; a replaced byte says that it does not."""
    try:
        decoded = json.loads(body) if isinstance(body, str) and "\ufffd" not in body else None
    except (ValueError, RecursionError):
        return False
    return isinstance(decoded, dict) and isinstance(decoded.get("metadata"), dict)


def _structure(db: sqlite3.Connection, table: str = "100") -> Iterator[str]:
    """What SQLite finds wrong: of one table, or of everything (so many at most)."""
    try:
        for row in db.execute(f"PRAGMA quick_check({table})"):
            if row[0] != "ok":
                yield str(row[0])
    except UNREADABLE as error:
        yield str(error)


def proves(row: tuple[object, ...]) -> bool:
    """Whether a row is intact: its last column is the checksum of the others."""
    return row[-1] == checksum(*row[:-1])
