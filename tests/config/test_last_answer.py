"""The answer of the last start: taken for the very same question, and for no other."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import koordlet
from koordlet.config import examiner, last_answer, loader, parcel, sourced
from tests.kit import agents

TEXT = agents.HEADER + "log: {level: warning}\n"


def asked(text: str | None = TEXT, **flags: object) -> parcel.Question:
    """A question about a file of that text."""
    return parcel.Question(text=text, path="/etc/koordlet/koordlet.yaml", env={}, flags=flags)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the answer to ``asked()`` is kept."""
    where = tmp_path / "last-answer.json"
    last_answer.keep(where, asked(), examiner.answered(asked()))
    return where


@pytest.mark.parametrize("text", [TEXT, None, agents.HEADER + "# größe\n"])
def test_the_same_question_has_the_same_answer(tmp_path: Path, text: str | None) -> None:
    """As if it had been validated: values, origins, warnings, file and text."""
    where, question = tmp_path / "last-answer.json", asked(text, mode="observe")
    last_answer.keep(where, question, examiner.answered(question))

    known = last_answer.load(where, question)

    assert isinstance(known, sourced.Effective)
    assert loader.answer(question) == known
    assert known.text == text
    assert where.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "other",
    [
        asked(TEXT + "#\n"),
        asked(None),
        asked(mode="observe"),
        replace(asked(), path="/etc/other.yaml"),
        replace(asked(), env={"KOORDLET_LOG__LEVEL": "error"}),
        replace(asked(), kept=True),
    ],
    ids=["text", "no file", "option", "place", "variable", "kept"],
)
def test_another_question_is_asked(place: Path, other: parcel.Question) -> None:
    """Text, place, options and our variables count; variables of others do not."""
    assert last_answer.load(place, replace(asked(), env={"HOME": "/"})) is not None
    assert last_answer.load(place, other) is None


def test_another_program_is_asked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version, and a module of a checkout that was edited meanwhile."""
    with monkeypatch.context() as patch:
        patch.setattr(koordlet, "__version__", "0.0.0")
        assert last_answer.load(place, asked()) is None
    module = Path(last_answer.__file__).with_name("limits.py")
    moved = place.parent / "koordlet"
    (moved / "config").mkdir(parents=True)
    (moved / "config/limits.py").write_bytes(module.read_bytes())
    monkeypatch.setattr(koordlet, "__file__", str(moved / "__init__.py"))
    last_answer.keep(place, asked(), examiner.answered(asked()))
    assert last_answer.load(place, asked()) is not None
    os.utime(moved / "config/limits.py", (1, 1))
    assert last_answer.load(place, asked()) is None


@pytest.mark.parametrize("damage", [b"", b"\n", b"{}", b"\xff\xfe"])
def test_a_damaged_file_is_no_answer(place: Path, damage: bytes) -> None:
    """An empty one, halves, bytes that are no text: before and after the question."""
    question = place.read_bytes().partition(b"\n")[0]
    for content in (damage, question + damage, question + b"\n" + damage):
        place.write_bytes(content)
        assert last_answer.load(place, asked()) is None


def test_an_answer_that_changed_on_disk_is_no_answer(place: Path) -> None:
    """Another value may be as well-formed as the right one: nobody validates it again."""
    kept = place.read_bytes()
    assert kept.count(b'"warning"') == 1
    place.write_bytes(kept.replace(b'"warning"', b'"verbose"'))

    assert last_answer.load(place, asked()) is None


def test_what_somebody_else_may_have_written(place: Path) -> None:
    """A file that others can write, a folder that they can, a link, none at all."""
    for path, mode in ((place, 0o622), (place.parent, 0o777)):
        before = path.stat().st_mode
        path.chmod(mode)
        assert last_answer.load(place, asked()) is None
        path.chmod(before)
    assert last_answer.load(place, asked()) is not None
    link = place.with_name("link")
    link.symlink_to(place)
    assert last_answer.load(link, asked()) is None
    assert last_answer.load(place.with_name("missing"), asked()) is None


def test_an_answer_that_the_kubelet_s_file_had_a_part_in_is_not_kept(tmp_path: Path) -> None:
    """That file may change while ours does not."""
    kubelet, where = tmp_path / "kubelet.yaml", tmp_path / "last-answer.json"
    kubelet.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    question = asked(agents.HEADER + f"kubelet: {{configFile: {kubelet}}}\n")

    last_answer.keep(where, question, examiner.answered(question))

    assert not where.exists()


def test_all_rooms_that_an_answer_comes_from_are_looked_at() -> None:
    """Whatever a validating process loads of koordlet lies in them."""
    program = "import sys; from koordlet.config import loader; print(*sys.modules)"
    words = [sys.executable, "-c", program]
    loaded = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("koordlet.")}

    assert rooms <= set(last_answer.ROOMS)
