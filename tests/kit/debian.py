"""Packages of other Debian suites, by the machine's own apt: its mirror and keys, lists apart.

Covers: which mirror that is, fetching lists and packages, what a package needs.
Does not cover: what is fetched (``containerd.programs``, ``tests.vm.kernels``).

The machine's own lists, packages and sources stay as they are; apt checks the signatures.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

#: The suite that the project's own image and its tests live on, and the next.
SUITE = "bookworm"
NEXT = "trixie"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: A download of 100 MB may be slow; a mirror that hangs is given up.
_PATIENCE = 300.0


class FetchError(Exception):
    """It cannot be had; the text says why."""


class Archive:
    """The lists of some suites."""

    def __init__(self, folder: Path, *suites: str) -> None:
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        mirror = _mirror()
        sources = folder / "sources.list"
        sources.write_text(
            "".join(f"deb [signed-by={_KEYRING}] {mirror} {s} main\n" for s in suites)
        )
        settings = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "",
            "Acquire::Retries": 3,
            "Acquire::Languages": "none",
        }
        self._options = [w for key, value in settings.items() for w in ("-o", f"{key}={value}")]
        run("apt-get", "-q", *self._options, "update")

    def download(self, into: Path, *packages: str) -> None:
        """Put packages into a folder; ``name/suite`` names one of a suite."""
        run("apt-get", "-q", *self._options, "download", *packages, folder=into)

    def needs(self, package: str) -> tuple[str, ...]:
        """What a package depends on: the first name of each alternative."""
        shown = run("apt-cache", *self._options, "show", package)
        for line in shown.splitlines():
            if line.startswith("Depends: "):
                return tuple(each.split()[0] for each in line.partition(": ")[2].split(", "))
        return ()


def _mirror() -> str:
    """Where this machine's apt gets Debian's main archive from."""
    form = "$(SITE) $(RELEASE) $(COMPONENT)"
    for line in run("apt-get", "indextargets", "--format", form, "Created-By: Packages").split(
        "\n"
    ):
        words = line.split()
        if words[1:] in ([SUITE, "main"], [NEXT, "main"]):
            return words[0]
    raise FetchError(f"apt's sources name no mirror with {SUITE} main or {NEXT} main")


def run(*words: str, folder: Path | None = None, more: str = "") -> str:
    """What a program prints; ``more`` is where it finds its libraries."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", **({"LD_LIBRARY_PATH": more} if more else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{words[0]}: {error}") from error
    if done.returncode:
        raise FetchError(f"{words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
