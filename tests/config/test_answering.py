"""One question, one answer: valid, refused, and over standard input and output."""

from __future__ import annotations

import subprocess
import sys

import pytest

from koordlet.config import loader, parcel, sourced
from koordlet.model import errors

HEADER = "apiVersion: koordlet.io/v1\nkind: Config\n"


def asked(text: str | None, *, kept: bool = False) -> parcel.Question:
    """A question about a text."""
    return parcel.Question(text=text, path="f", env={}, flags={}, kept=kept)


def test_a_valid_one() -> None:
    """The configuration that it comes to."""
    answer = loader.answer(asked(f"{HEADER}mode: observe\n"))

    assert isinstance(answer, sourced.Effective)
    assert (answer.config.mode, answer.origin("mode")) == ("observe", "f:3")


@pytest.mark.parametrize(
    ("text", "kept", "why"),
    [
        (f"{HEADER}mode: enfroce\n", False, "mode"),
        ("mode: observe\n", False, "apiVersion"),
        (None, True, "vanished"),
        ("# nothing\n", True, "became empty"),
    ],
)
def test_a_refusal(*, text: str | None, kept: bool, why: str) -> None:
    """What is wrong is an answer, no exception."""
    answer = loader.answer(asked(text, kept=kept))

    assert isinstance(answer, errors.ConfigError)
    assert why in str(answer)


def test_on_standard_input() -> None:
    """As ``examiner`` starts it: nothing but the answer on standard output."""
    question = asked(f"{HEADER}mode: observe\n")
    words = [sys.executable, "-c", "from koordlet.config import loader; loader.main()"]

    ran = subprocess.run(
        words, input=parcel.of_question(question), capture_output=True, check=True, timeout=60
    )

    assert loader.answer(question) == parcel.answer(ran.stdout, question)
