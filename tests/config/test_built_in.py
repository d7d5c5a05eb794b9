"""The answer that needs no validation: the one that validation would give, or none."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koordlet.config import built_in, loader, parcel, sourced
from tools.docs import built_in as generator

FLAGS = {
    "mode": sourced.Flag("observe", "--observe"),
    "scheduler.run": sourced.Flag(value=True, spelling="--scheduler"),
    "report.http.address": sourced.Flag("127.0.0.1:0", "--http"),
}


def asked(**more: Any) -> parcel.Question:
    """A question about no file."""
    return replace(parcel.Question(text=None, path="", env={}, flags={}), **more)


def test_the_file_has_what_the_models_say() -> None:
    """Otherwise: python -m tools.docs.built_in > koordlet/config/built_in.json."""
    assert Path(built_in.FILE).read_text("utf-8") == generator.text()


@pytest.mark.parametrize("count", range(len(FLAGS) + 1))
def test_with_any_options_it_is_the_answer_of_the_models(count: int) -> None:
    """Values, origins, warnings, file and text."""
    for chosen in itertools.combinations(FLAGS, count):
        question = asked(flags={path: FLAGS[path] for path in chosen})
        known = built_in.answer(question)

        assert isinstance(known, sourced.Effective)
        assert loader.answer(question) == known
        assert (known.text, known.config.mode) == (
            None,
            "observe" if "mode" in chosen else "enforce",
        )


@pytest.mark.parametrize("address", ["localhost:9316", "[::1]:80", "0.0.0.0:65535"])
def test_an_address_is_taken_that_the_models_take(address: str) -> None:
    """It is the operator's, and the only text among the options."""
    question = asked(flags={"report.http.address": sourced.Flag(address, "--http")})

    assert built_in.answer(question) == loader.answer(question)
    assert built_in.answer(question) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"text": ""},
        {"kept": True},
        {"env": {"KOORDLET_LOG__LEVEL": "error"}},
        {"env": {"KOORDLET_UNKNOWN": "1"}},
        {"flags": {"mode": sourced.Flag("off", "--mode")}},
        {"flags": {"mode": "observe"}},
        {"flags": {"scheduler.run": sourced.Flag("yes", "--scheduler")}},
        {"flags": {"report.http.address": sourced.Flag("9316", "--http")}},
        {"flags": {"report.http.address": sourced.Flag("host:65536", "--http")}},
        {"flags": {"report.http.address": sourced.Flag(9316, "--http")}},
        {"flags": {"kubelet.configFile": sourced.Flag("/etc/kubelet.yaml", "--kubelet-config")}},
        {"flags": {**FLAGS, "log.level": sourced.Flag("error", "--set")}},
    ],
    ids=str,
)
def test_everything_else_is_asked_about(other: dict[str, object]) -> None:
    """A file, a variable, an option that was not tried or has no such value."""
    assert built_in.answer(asked(**other)) is None


def test_variables_that_are_no_configuration_do_not_count() -> None:
    """Those of the command line, of tests, and everybody else's."""
    env = {"KOORDLET_ROOT": "/tmp", "KOORDLET_TEST_X": "1", "HOME": "/root"}

    assert built_in.answer(asked(env=env)) == loader.answer(asked())


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"kinds": [], "said": {"kind": 0}}'])
def test_a_file_that_is_missing_or_damaged_is_no_answer(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation that lost it starts as it did before there was one."""
    file = tmp_path / "built_in.json"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(built_in, "FILE", str(file))

    assert built_in.answer(asked(flags=FLAGS)) is None


def test_nothing_is_loaded_that_validates() -> None:
    """That is what it is for."""
    code = (
        "import sys; from koordlet.config import built_in, parcel;"
        " known = built_in.answer(parcel.Question(text=None, path='', env={}, flags={}));"
        " print(known is None, *(name for name in sys.modules if name in ('pydantic', 'yaml')))"
    )
    root = Path(__file__).parents[2]

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"
