"""Question and answer come out as they went in."""

from __future__ import annotations

import pytest

import koordlet
from koordlet.config import loader, parcel, sourced
from koordlet.model import errors

TEXT = "apiVersion: koordlet.io/v1\nkind: Config\nmode: observe\n"


@pytest.mark.parametrize("text", [None, "", TEXT, "# \udcff é 🐧\n"])
def test_a_question(text: str | None) -> None:
    """Text, place, our part of the environment, flags as they were spelled."""
    asked = parcel.Question(
        text=text,
        path="/etc/\udcff.yaml",
        env={"KOORDLET_MODE": "observe", "PATH": "/bin"},
        flags={"mode": sourced.Flag("observe", "--observe"), "state.dir": "/x"},
        kept=True,
    )

    again = parcel.question(parcel.of_question(asked))

    assert (text, asked.path, True) == (again.text, again.path, again.kept)
    assert again.env == {"KOORDLET_MODE": "observe"}
    assert asked.flags["mode"] == again.flags["mode"]
    assert sourced.Flag("/x", "command line") == again.flags["state.dir"]


def test_an_answer() -> None:
    """The configuration with its origins; the text stays with who asked."""
    asked = parcel.Question(text=TEXT, path="f", env={}, flags={"state.dir": "/x"})
    effective = loader.from_text(asked.text, asked.path, asked.env, asked.flags)

    again = parcel.answer(parcel.of_answer(effective), asked)

    assert effective == again
    assert isinstance(again, sourced.Effective)
    assert (
        again.text,
        again.origin("mode"),
        again.origin("state.dir"),
    ) == (TEXT, "f:3", "command line")


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers was upgraded under the agent: the configuration waits for a restart."""
    asked = parcel.Question(text=TEXT, path="f", env={}, flags={})
    packed = parcel.of_answer(loader.from_text(TEXT, "f", {}, {}))
    monkeypatch.setattr(koordlet, "__version__", "0.0.1")

    again = parcel.answer(packed, asked)

    assert isinstance(again, errors.ConfigError)
    assert (again.culprit, again.fix) == ("f", "restart the agent")
    assert "0.0.1 runs" in again.message


def test_a_refusal() -> None:
    """With culprit and fix."""
    refusal = errors.ConfigError("no", culprit="f:1", fix="yes")

    again = parcel.answer(
        parcel.of_answer(refusal), parcel.Question(text="", path="", env={}, flags={})
    )

    assert isinstance(again, errors.ConfigError)
    assert ("no", "f:1", "yes", str(refusal)) == (
        again.message,
        again.culprit,
        again.fix,
        str(again),
    )
