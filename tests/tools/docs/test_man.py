"""Manual pages: one for each command, with its options and examples."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from koordlet import cli
from tools.docs import man

PAGES = man.pages()


def test_each_command_has_a_page() -> None:
    """And the program's page names all of them."""
    assert PAGES.keys() == {"koordlet.1", *(f"koordlet-{name}.1" for name in cli.COMMANDS)}
    named = (name.replace("-", "\\-") for name in cli.COMMANDS)
    assert [name for name in named if f"koordlet\\-{name} (1)" not in PAGES["koordlet.1"]] == []


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_has_its_sections_and_no_stray_request(name: str) -> None:
    """What begins with a dot is a request that man(7) knows."""
    lines = PAGES[name].splitlines()
    requests = {line.split()[0] for line in lines if line.startswith(".")}

    assert lines[0].startswith(".TH KOORDLET")
    assert [line for line in lines if line.startswith(".SH")][:2] == [".SH NAME", ".SH SYNOPSIS"]
    assert requests <= {".TH", ".SH", ".TP", ".B", ".BR", ".I", ".nf", ".fi"}
    assert not any(line.startswith("'") for line in lines)
    assert not re.search(r"%\(\w+\)", PAGES[name])


def test_an_option_is_told_with_its_value() -> None:
    """As ``--help`` tells it."""
    assert ".B \\-\\-add\\-nodes N\n" in PAGES["koordlet-sim.1"]
    assert "koordlet sim all.json" in PAGES["koordlet-sim.1"].partition(".SH EXAMPLES")[2]


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_takes_them() -> None:
    """Without a warning."""
    for text in PAGES.values():
        words = ["groff", "-Kutf8", "-man", "-ww", "-z", "-Tutf8"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
