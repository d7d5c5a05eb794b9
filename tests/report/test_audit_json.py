"""The tail of the audit log: bounded, and whatever is in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from koordlet.report import audit_json

ANY = audit_json.AuditQuery()


def test_no_log_yet(tmp_path: Path) -> None:
    """A log that is not there has no records."""
    document = audit_json.document(tmp_path / "audit.jsonl", ANY)

    assert (document["records"], document["truncated"]) == ([], False)


def test_damaged_lines(tmp_path: Path) -> None:
    """What is no record is left out and counted; a line that is being written is neither."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"at":1}\nnonsense\n\xff\xfe\n[1]\n' + b"[" * 100_000 + b'\n{"at":2}\n{"at"')

    document = audit_json.document(path, ANY)

    assert (document["records"], document["damaged"]) == ([{"at": 2}, {"at": 1}], 4)


def test_goes_on_in_the_log_before(tmp_path: Path) -> None:
    """After a rotation the newest lines are in two files."""
    path = tmp_path / "audit.jsonl"
    path.write_text('{"at":3}\n', encoding="utf-8")
    (tmp_path / "audit.jsonl.1").write_text('{"at":1}\n{"at":2}\n', encoding="utf-8")

    document = audit_json.document(path, audit_json.AuditQuery(limit=2))

    assert document["records"] == [{"at": 3}, {"at": 2}]


def test_reading_is_bounded(tmp_path: Path) -> None:
    """A huge log costs no more than its tail, and the answer says that there is more."""
    path = tmp_path / "audit.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for n in range(40_000):
            file.write(json.dumps({"at": n, "policy": "x", "reason": "r" * 40}) + "\n")

    document = audit_json.document(path, audit_json.AuditQuery(policy="none"))
    newest = audit_json.document(path, audit_json.AuditQuery(limit=1))

    assert path.stat().st_size > 4 * audit_json.MAX_SCAN
    assert (document["truncated"], document["damaged"]) == (True, 0)
    assert ([record["at"] for record in records(newest)], newest["truncated"]) == (
        [39_999],
        False,
    )


def test_log_that_is_a_pipe(tmp_path: Path) -> None:
    """A pipe without a writer is an error at once: it does not hold the loop."""
    path = tmp_path / "audit.jsonl"
    os.mkfifo(path)

    with pytest.raises(OSError, match="not seekable"):
        audit_json.document(path, ANY)


def records(document: dict[str, object]) -> list[dict[str, object]]:
    """The records of a document."""
    listed = document["records"]
    assert isinstance(listed, list)
    return listed
