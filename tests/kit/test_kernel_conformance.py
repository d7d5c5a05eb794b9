"""The stand-in kernel answers every recorded operation exactly as the real kernels did."""

from __future__ import annotations

import dataclasses

import pytest

from tests.kit.kernel import conformance, page, script

RECORDINGS = conformance.recordings()


@pytest.mark.parametrize(
    "recording", RECORDINGS, ids=lambda recording: f"{recording.script}-{recording.facts.kernel}"
)
def test_stand_in_gives_the_recorded_answers(recording: script.Recording) -> None:
    """Each operation has the recorded outcome and leaves the recorded texts to be read."""
    replayed = conformance.replay(recording)

    assert conformance.differences(recording, replayed) == []


def test_every_script_is_recorded_as_it_is() -> None:
    """No script was changed after its recording, and none was never recorded."""
    written = {
        name: [operation.text for operation in program.operations]
        for name, program in conformance.scripts().items()
    }
    recorded = {
        recording.script: [answer.op for answer in recording.answers] for recording in RECORDINGS
    }

    assert written == recorded


def test_every_recording_of_a_script_has_all_its_operations() -> None:
    """Recordings of several kernels are of the same script."""
    scripts = conformance.scripts()
    other = [
        recording.key
        for recording in RECORDINGS
        if [answer.op for answer in recording.answers]
        != [operation.text for operation in scripts[recording.script].operations]
    ]

    assert other == []


def test_a_different_answer_is_reported_with_its_operation() -> None:
    """The comparison names the operation, what was recorded and what was found."""
    facts = RECORDINGS[0].facts
    first = script.Recording("v1-x", facts, (script.Answer("mkdir a", "ok"),))
    second = script.Recording("v1-x", facts, (script.Answer("mkdir a", "EBUSY"),))

    differences = conformance.differences(first, second)

    assert len(differences) == 1
    assert "operation 1: mkdir a" in differences[0]
    assert "ok" in differences[0]
    assert "EBUSY" in differences[0]


def test_a_missing_operation_is_a_difference() -> None:
    """A run that stopped early does not count as agreement."""
    recording = RECORDINGS[0]
    short = script.Recording(recording.script, recording.facts, recording.answers[:-1])

    assert conformance.differences(recording, short) != []


def test_the_nearest_recording_is_never_of_a_newer_kernel() -> None:
    """A host is compared with the newest recorded kernel that is not newer than itself."""
    recording = RECORDINGS[0]
    versions = ["5.15.0", "6.1.0", "6.18.3"]
    known = [
        script.Recording("x", dataclasses.replace(recording.facts, kernel=kernel), ())
        for kernel in versions
    ]
    asked = dataclasses.replace(recording.facts, kernel="6.6.1")

    nearest = script.nearest(known, "x", asked)

    assert nearest is not None
    assert nearest.facts.kernel == "6.1.0"
    assert script.nearest(known[1:], "x", known[0].facts) is None


def test_the_page_of_answers_is_not_stale() -> None:
    """``docs/kernel-answers.md`` is what the recordings say."""
    written = conformance.FOLDER.parents[1] / "docs" / "kernel-answers.md"

    assert written.read_text(encoding="utf-8") == page.page()
