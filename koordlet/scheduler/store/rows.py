"""The SQL statements for objects, their events, and the revision counter.

Covers: every SQL statement of a running store. Each function runs inside of a transaction that
``database`` has begun. Does not cover: what an API server does with an object (``writing``).
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model.record import dataclass
from koordlet.scheduler.store import proof

#: Kept for watches that resume. The oldest tenth goes when one more than this is there.
HISTORY = 20_000


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One change: an empty ``before`` is a new object, an empty ``after`` one that is gone."""

    revision: int
    before: objects.Object
    after: objects.Object


def revision(db: sqlite3.Connection) -> int:
    """The newest revision."""
    return int(db.execute("SELECT revision FROM clock").fetchone()[0])


def compacted(db: sqlite3.Connection) -> int:
    """The oldest revision that a watch can start from."""
    return int(db.execute("SELECT compacted FROM clock").fetchone()[0])


def get(db: sqlite3.Connection, ref: objects.Ref) -> dict[str, Any] | None:
    """One object in the version that is asked for."""
    row = db.execute(
        "SELECT * FROM objects WHERE kind = ? AND namespace = ? AND name = ?",
        (str(ref.kind), ref.namespace, ref.name),
    ).fetchone()
    return _read(ref.kind, row[4]) if row is not None and _is_whole(row) else None


def every(db: sqlite3.Connection, kind: kinds.Kind, namespace: str) -> list[dict[str, Any]]:
    """All objects of a kind by namespace and name; no namespace: of all of them."""
    rows = db.execute(
        "SELECT * FROM objects WHERE kind = ? AND (? = '' OR namespace = ?)"
        " ORDER BY namespace, name",
        (str(kind), namespace, namespace),
    )
    return [_read(kind, row[4]) for row in rows if _is_whole(row)]


def put(
    db: sqlite3.Connection, ref: objects.Ref, before: objects.Object | None, body: dict[str, Any]
) -> dict[str, Any]:
    """Write an object under the next revision, which it gets."""
    number = _tick(db)
    body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(number)}}
    text = _write(body)
    db.execute(
        "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " revision = excluded.revision, body = excluded.body, checksum = excluded.checksum",
        proof.sealed(str(ref.kind), ref.namespace, ref.name, number, text),
    )
    _record(db, number, ref, "" if before is None else _write(before), text)
    return body


def remove(db: sqlite3.Connection, ref: objects.Ref, body: dict[str, Any]) -> None:
    """Remove an object; the next revision records its last state."""
    number = _tick(db)
    db.execute(
        "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?",
        (str(ref.kind), ref.namespace, ref.name),
    )
    last = {**body, "metadata": {**body["metadata"], "resourceVersion": str(number)}}
    _record(db, number, ref, _write(last), "")


def since(
    db: sqlite3.Connection, kind: kinds.Kind, namespace: str, after: int, most: int
) -> list[StoredEvent]:
    """The oldest changes of a kind after a revision."""
    rows = db.execute(
        "SELECT * FROM events"
        " WHERE kind = ? AND revision > ? AND (? = '' OR namespace = ?) ORDER BY revision LIMIT ?",
        (str(kind), after, namespace, namespace, most),
    )
    events = []
    for row in rows:
        if not proof.proves(row):
            raise gone(kind, f"the event of revision {row[0]} is damaged")
        events.append(StoredEvent(row[0], _read(kind, row[3]), _read(kind, row[4])))
    return events


def gone(kind: kinds.Kind, why: str) -> refusals.Gone:
    """What a watch ends with that cannot go on."""
    return refusals.Gone(why, culprit=str(kind), fix="list again", reason="Expired")


def compact(db: sqlite3.Connection, floor: int) -> None:
    """Forget the changes up to a revision."""
    db.execute("DELETE FROM events WHERE revision <= ?", (floor,))
    proof.set_clock(db, revision(db), max(compacted(db), floor))


def _tick(db: sqlite3.Connection) -> int:
    number, oldest = revision(db) + 1, compacted(db)
    proof.set_clock(db, number, oldest)
    # Revisions are dense, so their difference is how many events there are.
    if number - oldest > HISTORY:
        compact(db, number - HISTORY + HISTORY // 10)
    return number


def _record(db: sqlite3.Connection, number: int, ref: objects.Ref, before: str, after: str) -> None:
    db.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
        proof.sealed(number, str(ref.kind), ref.namespace, before, after),
    )


def _is_whole(row: tuple[Any, ...]) -> bool:
    """Whether an event is intact; damage is logged once."""
    if proof.proves(row):
        return True
    _tell_of(str(row[0]), str(row[1]), str(row[2]))
    return False


@functools.lru_cache(maxsize=1024)
def _tell_of(kind: str, namespace: str, name: str) -> None:
    log.get().error("scheduler.row_damaged", kind=kind, namespace=namespace, name=name)


def _write(body: Mapping[str, Any]) -> str:
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise refusals.Malformed(f"not JSON: {error}") from error


def _read(kind: kinds.Kind, text: str) -> dict[str, Any]:
    if not text:
        return {}
    body: dict[str, Any] = json.loads(text)
    # One form is kept; every version that is served shows it under its own name.
    body["apiVersion"] = kind.api_version
    return body
