"""A journal's text: what it says, what of it is damaged, and what cannot be ours."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.state import records
from tests.kit import search

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
    found = records.read(raw)

    assert {"/a": A.landed("2", 9)} == found.entries
    assert (found.damage, found.count, found.format) == ((), 6, 3)
    assert found.header == HEADER


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
    found = records.read(records.line(header) * 2 + records.intent(A))

    assert found.header is None
    assert (found.entries, found.damage, found.count, found.format) == ({}, (), 3, 0)


def test_the_second_header_serves_where_the_first_is_damaged() -> None:
    """Also where the damage is a newline; one that comes later than that is not looked for."""
    torn = HEAD[:9] + b"\n" + HEAD[10:]
    for first in (HEAD.replace(b"pods", b"pots"), torn):
        found = records.read(first + HEAD + records.intent(A))
        assert found.header == HEADER
        assert found.entries == {"/a": A}
        assert found.damage
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
    found = records.read(raw + line + records.intent(entry("/c")))

    assert list(found.entries) == ["/a", "/c"]
    assert (f"line {number + 1}: damaged record skipped",) == found.damage
    assert found.count == 5


def test_an_entry_that_cannot_be_ours_is_left_out_with_the_reason() -> None:
    """However good its checksum: it is judged as it is after all facts about it."""
    seen: list[records.Entry] = []

    def refusal(one: records.Entry) -> str:
        seen.append(one)
        return "no place of ours: /b" if one.target == "/b" else ""

    raw = HEAD + records.intent(A) + records.intent(B) + records.done("/a", "2", 9)
    found = records.read(raw, refusal)

    assert {"/a": A.landed("2", 9)} == found.entries
    assert found.damage == ("entry skipped: no place of ours: /b",)
    assert [A.landed("2", 9), B] == seen
    assert records.never(A) == ""


@search.examples(200)
@hypothesis.given(st.binary(max_size=80), st.integers(0, 400), st.integers(0, 400))
def test_whatever_is_written_over_it(garbage: bytes, start: int, length: int) -> None:
    """Any bytes in place of any: it never breaks, and an entry is as it was written or missing."""
    raw = HEAD * 2 + records.intent(A) + records.intent(B)
    found = records.read(raw[:start] + garbage + raw[start + length :])

    assert found.entries.items() <= {"/a": A, "/b": B}.items()
    assert found.header in (None, HEADER)
