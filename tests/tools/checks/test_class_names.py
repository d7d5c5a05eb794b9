"""Two public classes never share a name by accident."""

from __future__ import annotations

from pathlib import Path

from tools.checks import class_names

ROOT = Path(__file__).parents[3]


def test_the_tree() -> None:
    """Every duplicate is on the list, and every entry of the list is a duplicate."""
    allowed = class_names.ALLOWED.read_text(encoding="utf-8").splitlines()

    assert class_names.problems(class_names.found(ROOT / "koordlet"), allowed) == []


def test_duplicates(tmp_path: Path) -> None:
    """A name in two modules is refused, unless the whole tree or a folder is exempt."""
    for name in ("a/one", "a/two", "gen/three"):
        path = tmp_path / "top" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("class Reader:\n    class Inner: ...\nclass _Own: ...\n")
    modules = class_names.found(tmp_path / "top")

    assert modules == {"Reader": ["top/a/one.py", "top/a/two.py"]}
    assert class_names.problems(modules, []) == [
        "Reader is in top/a/one.py, top/a/two.py: rename it in all but one"
    ]
    for allowed in ("Reader", "Reader top/a/", "* top/"):
        assert class_names.problems(modules, ["# why", "", allowed]) == []


def test_useless_entries() -> None:
    """An entry that allows nothing is refused, so that the list only shrinks."""
    modules = {"Reader": ["one.py"]}

    assert class_names.problems(modules, ["Reader"]) == ["class_names.txt: remove Reader"]
