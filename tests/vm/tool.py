"""Runs the host's tools (apt, dpkg-deb, mke2fs, ...) so that a failure says what to do about it.

Covers: short-lived tools while something is built. Does not cover: the emulator (``machine``).
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Sequence

#: Words of a shell: all that the harness needs of the host.
PACKAGES = "$(python3 -m tests.vm packages)"


class ToolError(RuntimeError):
    """A tool is missing or failed; the text says which and what it printed."""


def run(command: Sequence[str], folder: pathlib.Path | None = None) -> str:
    """What the tool printed, both streams together."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise missing(command[0]) from None
    if done.returncode:
        tail = done.stdout[-3000:]
        raise ToolError(f"{' '.join(command)}: exit status {done.returncode}\n{tail}")
    return done.stdout


def filter_through(command: Sequence[str], data: bytes) -> bytes:
    """What the tool makes of bytes."""
    try:
        done = subprocess.run(
            command, env=environment(), input=data, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise missing(command[0]) from None
    if done.returncode:
        tail = done.stderr.decode(errors="replace")[-3000:]
        raise ToolError(f"{' '.join(command)}: exit status {done.returncode}\n{tail}")
    return done.stdout


def missing(name: str, package: str = PACKAGES) -> ToolError:
    """The error for a tool that is not installed."""
    return ToolError(f"{name} is not installed: apt-get install --no-install-recommends {package}")


def environment() -> dict[str, str]:
    """English messages, and the folders where Debian keeps the administrator's tools."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {**os.environ, "LC_ALL": "C", "PATH": f"{path}:/usr/sbin:/sbin"}
