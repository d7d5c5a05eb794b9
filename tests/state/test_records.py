"""One record of the journal: whatever a line holds is a record or none, and a record comes back."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.state import records
from tests.kit import search

ENTRY = records.Entry("WriteFile", "/f", "p", "0-3", ("1", "2"), "cpuset.cpus", "g", 7, 1.5)


def lines(data: bytes) -> list[bytes]:
    """The lines of what was made, without the newlines around it."""
    assert data.startswith(b"\n")
    assert data.endswith(b"\n")
    return data[1:-1].split(b"\n")


@search.examples(200)
@hypothesis.given(st.binary(max_size=200))
def test_any_bytes(line: bytes) -> None:
    """A line that nobody wrote is no record, and no crash."""
    assert records.parse(line) is None


@pytest.mark.parametrize(
    "body",
    [b"7", b"[]", b"null", b"{", b"\xff", b"", b"[" * 100_000, b'{"a":1' + b"0" * 400 + b"}"],
    ids=lambda body: repr(body[:12]),
)
def test_a_good_checksum_of_no_object(body: bytes) -> None:
    """It proves the bytes, not that they are a record."""
    (line,) = lines(records.framed(body))

    assert records.parse(line) is None


@pytest.mark.parametrize("at", range(0, 60, 7))
def test_one_damaged_byte(at: int) -> None:
    """The checksum tells."""
    (line,) = lines(records.intent(ENTRY))
    damaged = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]

    assert records.parse(line) is not None
    assert records.parse(damaged) is None


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"intent": 1},
        {"intent": {}},
        {"intent": {"target": "/f"}},
        {"intent": {**ENTRY._asdict(), "values": 3}},
        {"intent": {**ENTRY._asdict(), "more": 1}},
        {"intent": {**ENTRY._asdict(), "properties": [["a"]]}},
        {"intent": {**ENTRY._asdict(), "values": []}},
        {"intent": {**ENTRY._asdict(), "values": [7]}},
        {"intent": {**ENTRY._asdict(), "target": 7}},
        {"intent": {**ENTRY._asdict(), "original": 7}},
        {"intent": {**ENTRY._asdict(), "inode": -1}},
        {"intent": {**ENTRY._asdict(), "inode": True}},
        {"intent": {**ENTRY._asdict(), "unix_time": "now"}},
        {"intent": {**ENTRY._asdict(), "sure": "yes"}},
        {"intent": {**ENTRY._asdict(), "unit": ["a"]}},
        {"done": {"target": ENTRY.target, "value": 7, "inode": 1}},
        {"done": {"target": ENTRY.target, "value": "1", "inode": "1"}},
        {"done": {"target": "/nobody", "value": "1", "inode": 1}},
        {"done": {"target": ENTRY.target, "inode": 1}},
        {"forget": {}},
        {"later": {"target": ENTRY.target}},
    ],
    ids=repr,
)
def test_a_record_that_makes_no_sense(record: dict[str, object]) -> None:
    """It is told apart, and changes nothing."""
    entries = {ENTRY.target: ENTRY}

    assert not records.fold(entries, record)
    assert entries == {ENTRY.target: ENTRY}


_TEXT = st.text(max_size=12)


@search.examples(100)
@hypothesis.given(
    st.builds(
        records.Entry,
        *(
            _TEXT,
            _TEXT,
            _TEXT,
            st.none() | _TEXT,
            st.lists(_TEXT, min_size=1, max_size=3).map(tuple),
        ),
        *(_TEXT, _TEXT, st.integers(0, 1 << 62), st.floats(0, 1e12), st.booleans(), _TEXT),
    )
)
def test_an_intent_comes_back(entry: records.Entry) -> None:
    """What is written out by hand is read as JSON, on one line; a unit brings its properties."""
    entry = entry._replace(properties=(("A", "1"), ("B\n", "")) if entry.unit else ())
    (line,) = lines(records.intent(entry))
    entries: dict[str, records.Entry] = {}

    assert records.fold(entries, records.parse(line) or {})
    assert entries == {entry.target: entry}


def test_facts_follow_in_their_order() -> None:
    """What was read back is the only value then, in the group as it is; what is forgotten goes."""
    entries = {ENTRY.target: ENTRY}
    (done,) = lines(records.done(ENTRY.target, "2", 9))
    assert records.fold(entries, records.parse(done) or {})
    assert entries[ENTRY.target] == ENTRY._replace(values=("2",), inode=9, sure=True)

    (gone,) = lines(records.line({"forget": {"target": ENTRY.target}}))
    assert json.loads(gone.rpartition(b"\t")[0]) == {"forget": {"target": ENTRY.target}}
    assert records.fold(entries, records.parse(gone) or {})
    assert entries == {}
