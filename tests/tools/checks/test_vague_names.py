"""A variable says the role of its type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.checks import vague_names

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", vague_names.FOLDERS)
def test_no_module_of_a_folder_binds_a_vague_name(folder: str) -> None:
    """STYLE.md: ``one``, ``found`` and ``said`` say nothing."""
    assert any((ROOT / folder).rglob("*.py"))
    assert vague_names.problems(ROOT / folder) == []


@pytest.mark.parametrize(
    "source",
    [
        "one = 1",
        "one: int = 1",
        "one += 1",
        "a, (b, *one) = c",
        "if one := f(): pass",
        "for one in pods: pass",
        "a = [one.name for one in pods]",
        "a = lambda one: 1",
        "def f(one): pass",
        "def f(*, one=1): pass",
        "def f(**one): pass",
        "class A:\n one: int",
        "with f() as one: pass",
        "try: pass\nexcept OSError as one: pass",
        "match a:\n case [*one]: pass",
        "match a:\n case {**one}: pass",
        "match a:\n case int() as one: pass",
        "import a as one",
    ],
)
def test_every_way_to_bind_a_name_is_seen(source: str) -> None:
    """A way that the check does not know would be where the names come back."""
    assert [name for _, name in vague_names.bound(source)] == ["one"]


def test_functions_reads_and_texts_may_have_the_words() -> None:
    """``re.Match`` and other people's objects have such attributes; texts are for readers."""
    source = "def found(): return a.said, f(one=1), 'one'"

    assert vague_names.bound(source) == []


@pytest.mark.parametrize(
    "source",
    ["const one = 1;", "a.map((one) => b);", "for (const one of a) b();", "f({ ...one });"],
)
def test_scripts_of_the_pages_are_read_too(source: str) -> None:
    """Every variable, however it is bound; not properties, comments and texts."""
    assert vague_names.in_script(f"a;\n{source}") == [(2, "one")]
    assert vague_names.in_script('a.found("one"); // said') == []


def test_generated_code_is_left_out(tmp_path: Path) -> None:
    """The line names the file, the name and the remedy."""
    for name in ("a/b", "a/gen/c"):
        path = tmp_path / "top" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\nsaid = 1\n", encoding="utf-8")

    assert vague_names.problems(tmp_path / "top") == [
        f"{tmp_path}/top/a/b.py:2: said: say the role of its type"
    ]
