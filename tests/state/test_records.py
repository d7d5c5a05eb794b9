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


HEADER = {"format": 3, "machine_id": "m", "boot_id": "b", "root": "pods"}


def entry(target: str) -> records.Entry:
    """An entry of a file."""
    return records.Entry("WriteFile", target, "p", "0-3", ("1",), "cpuset.cpus", "g", 7, 1.5)


A, B = entry("/a"), entry("/b")
HEAD = records.line(HEADER)


def test_everything_that_a_text_says() -> None:
    """Facts are folded in their order; both headers and every fact are counted."""
    raw = HEAD + HEAD + records.intent(A) + records.intent(B)
    raw += records.done("/a", "2", 9) + records.line({"forget": {"target": "/b"}})
    journal = records.read(raw)

    assert {"/a": A.landed("2", 9)} == journal.entries
    assert (journal.damage, journal.count, journal.format) == ((), 6, 3)
    assert journal.header == HEADER


@pytest.mark.parametrize(
    ("stamp", "ours"),
    [
        ({"machine_id": "m", "boot_id": "b"}, True),
        ({"machine_id": "m", "boot_id": "c"}, False),
        ({"machine_id": "", "boot_id": "b"}, False),
        ({"machine_id": "m", "boot_id": "b", "more": "x"}, False),
    ],
)
def test_whose_it_is(stamp: dict[str, str], *, ours: bool) -> None:
    """Of this boot of this machine where each part of the stamp is the header's; else nobody's."""
    assert ours is records.read(HEAD).is_of(stamp)
    assert not records.read(b"").is_of(stamp)


@pytest.mark.parametrize(
    "header",
    [
        {**HEADER, "format": "3"},
        {**HEADER, "format": True},
        {**HEADER, "format": None},
        {**HEADER, "root": 7},
        {**HEADER, "root": "../etc"},
        {**HEADER, "root": "/a/../../etc"},
        {"machine_id": "m"},
    ],
)
def test_what_is_no_header(header: dict[str, object]) -> None:
    """Without a whole one it is no journal, whatever follows: nothing of it is ours."""
    journal = records.read(records.line(header) * 2 + records.intent(A))

    assert journal.header is None
    assert (journal.entries, journal.damage, journal.count, journal.format) == ({}, (), 3, 0)


def test_the_second_header_serves_where_the_first_is_damaged() -> None:
    """Also where the damage is a newline; one that comes later than that is not looked for."""
    torn = HEAD[:9] + b"\n" + HEAD[10:]
    for first in (HEAD.replace(b"pods", b"pots"), torn):
        journal = records.read(first + HEAD + records.intent(A))
        assert journal.header == HEADER
        assert journal.entries == {"/a": A}
        assert journal.damage
    assert records.read(b"x\nx\nx\n" + HEAD + records.intent(A)).header is None


@pytest.mark.parametrize(
    "line",
    [
        records.intent(B).replace(b"0-3", b"0-4"),
        b"\nnonsense\n",
        b"\n\xff\xfe\t00000000\n",
        records.line({"intent": {"target": 7}}),
        records.line({"done": {"target": "/nowhere", "value": "1", "inode": 1}}),
        records.line({"surprise": {}}),
        records.line({}),
    ],
)
def test_a_damaged_record_costs_itself_and_names_its_line(line: bytes) -> None:
    """Those around it count; its number is that of the line in the file."""
    raw = HEAD * 2 + records.intent(A)
    number = raw.count(b"\n") + line[:-1].count(b"\n")
    journal = records.read(raw + line + records.intent(entry("/c")))

    assert list(journal.entries) == ["/a", "/c"]
    assert (f"line {number + 1}: damaged record skipped",) == journal.damage
    assert journal.count == 5


def test_an_entry_that_cannot_be_ours_is_left_out_with_the_reason() -> None:
    """However good its checksum: it is judged as it is after all facts about it."""
    seen: list[records.Entry] = []

    def refusal(entry: records.Entry) -> str:
        seen.append(entry)
        return "no place of ours: /b" if entry.target == "/b" else ""

    raw = HEAD + records.intent(A) + records.intent(B) + records.done("/a", "2", 9)
    journal = records.read(raw, refusal)

    assert {"/a": A.landed("2", 9)} == journal.entries
    assert journal.damage == ("entry skipped: no place of ours: /b",)
    assert [A.landed("2", 9), B] == seen
    assert records.never(A) == ""


@search.examples(200)
@hypothesis.given(st.binary(max_size=80), st.integers(0, 400), st.integers(0, 400))
def test_whatever_is_written_over_it(garbage: bytes, start: int, length: int) -> None:
    """Any bytes in place of any: it never breaks, and an entry is as it was written or missing."""
    raw = HEAD * 2 + records.intent(A) + records.intent(B)
    journal = records.read(raw[:start] + garbage + raw[start + length :])

    assert journal.entries.items() <= {"/a": A, "/b": B}.items()
    assert journal.header in (None, HEADER)
