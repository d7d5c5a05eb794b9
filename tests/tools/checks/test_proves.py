"""The table of suites: no module without a proof, and no row that is not true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.checks import proves


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a mirrored module, one that a suite imports, and one behind that."""
    for path, text in {
        "koordlet/__init__.py": '"""Nothing."""\n',
        "koordlet/host/fs.py": "from koordlet.model import names\n",
        "koordlet/model/names.py": "from koordlet.model import (\n    letters as abc,\n)\n",
        "koordlet/model/letters.py": "A = 1\n",
        "koordlet/cli/show.py": "A = 1\n",
        "tests/host/test_fs.py": "from koordlet.host import fs\n",
        "tests/cli/test_output.py": 'main("show")\n',
        "tests/model/test_words.py": "from koordlet.model import names\n\nnames.A\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_write_names_the_suite_that_imports_a_module_or_its_importer(checkout: Path) -> None:
    """The mirrored module has no row; a command is found by its word."""
    status = proves.main(["--write"], checkout)

    assert status == 0
    assert proves.read(checkout) == {
        "koordlet/cli/show.py": "tests/cli/test_output.py",
        "koordlet/model/letters.py": "tests/model/test_words.py",
        "koordlet/model/names.py": "tests/model/test_words.py",
    }


def test_a_module_with_neither_test_file_nor_row_fails(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names both places."""
    proves.main(["--write"], checkout)
    (checkout / "koordlet/model/new.py").write_text("A = 1\n")

    status = proves.main([], checkout)

    assert status == 1
    assert "koordlet/model/new.py: no tests/model/test_new.py and no row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "suite", "problem"),
    [
        ("koordlet/host/fs.py", "tests/host/test_fs.py", "a row, but tests/host/test_fs.py exists"),
        ("koordlet/model/gone.py", "tests/host/test_fs.py", "a row, but no such module"),
        (
            "koordlet/cli/show.py",
            "tests/host/test_fs.py",
            "tests/host/test_fs.py does not reach it",
        ),
        (
            "koordlet/cli/show.py",
            "tests/cli/test_gone.py",
            "tests/cli/test_gone.py does not reach it",
        ),
    ],
)
def test_a_row_that_is_not_true_fails_and_write_mends_it(
    checkout: Path, module: str, suite: str, problem: str
) -> None:
    """What is right stays as it was."""
    proves.main(["--write"], checkout)
    right = proves.read(checkout)
    wrong = right | {module: suite}

    problems = proves.problems(proves.Checkout(checkout), wrong)

    assert [sentence.split(": ")[0] for sentence in problems] == [module]
    assert problems[0].split(": ")[1].startswith(problem)
    assert proves.mended(proves.Checkout(checkout), wrong) == right


def test_the_table_of_this_checkout_is_true() -> None:
    """Each module has a test file of its own or a true row."""
    assert proves.problems(proves.Checkout(proves.ROOT), proves.read(proves.ROOT)) == []
