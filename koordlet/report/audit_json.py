"""The newest lines of the audit log, filtered, as ``/api/v1/audit`` shows them.

Covers: reading the log backwards, bounded; the filters. Does not cover: writing it (``state``).

Rules:
1. No more than ``most`` bytes are read for one question, whatever is asked (``MAX_SCAN`` where a
   loop waits): ``truncated`` says that older lines were not looked at.
2. A damaged line is left out and counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from koordlet.model.record import dataclass

MAX_LINES = 1000
DEFAULT_LINES = 100
#: About 2 000 lines, and a few milliseconds.
MAX_SCAN = 1 << 19

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Filter of an audit query; ``None`` matches any."""

    limit: int = DEFAULT_LINES
    #: Unix time.
    since: float | None = None
    #: ``namespace/name``, with the cgroup it is known by now.
    pod: str | None = None
    group: str | None = None
    policy: str | None = None
    #: The file that was written.
    target: str | None = None


def document(path: Path, question: AuditQuery, *, most: int = MAX_SCAN) -> dict[str, object]:
    """The answer, newest first."""
    records: list[Record] = []
    damaged, whole = 0, True
    left = most
    for file in (path, path.with_name(path.name + ".1")):
        lines, complete = _tail(file, left)
        left -= sum(map(len, lines))
        for line in reversed(lines):
            record = _record(line)
            if record is None:
                damaged += 1
            elif len(records) < question.limit and _wanted(record, question):
                records.append(record)
        whole = whole and complete
        if len(records) >= question.limit or not complete:
            break
    return {
        "version": "v1",
        "records": records,
        "damaged": damaged,
        "truncated": not whole and len(records) < question.limit,
    }


def moment(text: str, now: float) -> float:
    """``2026-01-31T12:00:00Z``, Unix seconds, or ``10m`` ago; ``ValueError`` for anything else."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:])
    if unit is not None:
        return now - _finite(text[:-1]) * unit
    try:
        return _finite(text)
    except ValueError:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _finite(text: str) -> float:
    value = float(text)
    if not -1e12 < value < 1e12:
        msg = "not a time"
        raise ValueError(msg)
    return value


def _tail(path: Path, most: int) -> tuple[list[bytes], bool]:
    """The last whole lines of a file, and whether those are all."""
    try:
        # Not a pipe or a device that would make us wait.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return [], True
    with os.fdopen(handle, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - most)
        file.seek(start)
        lines = file.read(most).split(b"\n")
    # What comes after the last newline is being written now.
    lines.pop()
    return (lines[1:], False) if start else (lines, True)


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _wanted(record: Record, question: AuditQuery) -> bool:
    at = record.get("at")
    return (
        question.policy in (None, record.get("policy"))
        and question.target in (None, record.get("target"))
        and (question.since is None or (isinstance(at, int | float) and at >= question.since))
        and (question.pod is None or _about(record, question))
    )


def _about(record: Record, question: AuditQuery) -> bool:
    if record.get("pod") == question.pod:
        return True
    group = record.get("group")
    if question.group is None or not isinstance(group, str):
        return False
    return group == question.group or group.startswith(question.group + "/")
