"""Programs beside koordlet, kubectl, systemd, curl: what they name exists, or a reason why not."""

from __future__ import annotations

import importlib.util
import re

from tests.docs import commands

#: Programs that documents tell readers to run, and why no test of theirs does.
NOT_RUN = {
    "apt-get": "installs packages of the reader's machine",
    "docker": "builds an image: tests/deploy/test_manifests.py holds the Dockerfile's sources",
    "grpcurl": "is the reader's own; tests/rpc asks the same service, reflection included",
    "journalctl": "reads the log of a machine of the reader",
    "tc": "shows what tests/e2e/test_network_qos.py has set",
    "py-spy": "is the reader's own, for a process that hangs",
    "bash": "continuous integration itself",
}
_PROGRAM = re.compile(r"^(?:\$ )?([a-z][a-z-]+)((?: +[^ |#>]+)*)")


def shown() -> dict[str, list[list[str]]]:
    """Program to the words after it, of every block and span that names one of them."""
    words_of: dict[str, list[list[str]]] = {}
    for page in commands.PAGES:
        for line in commands.lines(page):
            match = _PROGRAM.match(line)
            if match is not None and match[2]:
                words_of.setdefault(match[1], []).append(match[2].split())
    return words_of


SHOWN = shown()


def test_targets_exist() -> None:
    """Of make."""
    makefile = (commands.REPO / "Makefile").read_text()
    there = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    named = {words[0] for words in SHOWN["make"]}

    assert len(named) >= 10
    assert named <= there


def test_modules_exist() -> None:
    """Of ``python -m``."""
    named = {words[1] for words in SHOWN["python"] if words[0] == "-m"}

    assert len(named) >= 5
    assert {module for module in named if importlib.util.find_spec(module) is None} == set()


def test_every_reason_is_needed() -> None:
    """No program has one that no document shows."""
    assert NOT_RUN.keys() <= SHOWN.keys()
