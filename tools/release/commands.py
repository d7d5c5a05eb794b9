"""Programs and times that every part of a release shares.

Covers: running a program, the moment that stands for all files, checksums.
Does not cover: what is run.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

REPO = Path(__file__).parents[2]
_PATIENCE = 900.0


class BuildError(Exception):
    """A part cannot be built; the text says why, and what helps."""


def run(*words: str | Path, folder: Path | None = None, **variables: str) -> str:
    """What a program prints; an error has the end of what it said."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **variables}
    try:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=folder or REPO,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{words[0]}: {error}") from error
    if done.returncode:
        output = (done.stderr or done.stdout).strip()[-2000:]
        raise BuildError(f"{words[0]} ended with {done.returncode}: {output}")
    return done.stdout


def epoch() -> int:
    """Seconds since 1970: SOURCE_DATE_EPOCH, or when the last commit was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "log", "-1", "--format=%ct"))


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
