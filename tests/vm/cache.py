"""Things that are built once and kept between runs.

Covers: where they are, what they are called (a digest of all that went into them), that a
half-built one is never seen, and that two processes never build the same one at once.
Does not cover: what is built (``image``, ``project``).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Iterator

#: How many of a kind are kept: the newest stay, so switching branches does not build again.
KEPT = 3


def folder() -> pathlib.Path:
    """``koordlet/vm`` in the user's cache folder, made if absent."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(home) / "koordlet" / "vm"
    path.mkdir(parents=True, exist_ok=True)
    return path


def say(text: str) -> None:
    """A line for the person who waits; stdout belongs to the guest's command."""
    print(f"vm: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Tells what was done and how long it took."""
    start = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - start:.1f} s")


def digest(*parts: str | bytes | pathlib.Path) -> str:
    """A short name for the parts; a path counts with its name and its content."""
    total = hashlib.sha256()
    for part in parts:
        match part:
            case pathlib.Path():
                data = part.name.encode() + b"\0" + part.read_bytes()
            case str():
                data = part.encode()
            case bytes():
                data = part
            case _:
                typing.assert_never(part)
        total.update(b"%d:" % len(data) + data)
    return total.hexdigest()[:16]


def once(kind: str, key: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """The folder ``kind-key``; unless it is there, ``make`` fills a new one that takes its name.

    A failed ``make`` leaves nothing behind. Whoever comes second waits for the first.
    """
    target = folder() / f"{kind}-{key}"
    if not target.exists():
        with _locked(folder() / f"{kind}.lock"):
            if not target.exists():
                _build(kind, target, make)
                _forget_old(kind, target)
    os.utime(target)
    return target


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process builds: waiting for {path.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(kind: str, target: pathlib.Path, make: Callable[[pathlib.Path], None]) -> None:
    for left in target.parent.glob(f"new-{kind}-*"):  # of a build that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"new-{kind}-", dir=target.parent) as work:
        fresh = pathlib.Path(work) / "fresh"
        fresh.mkdir()
        with step(f"built {target.name}"):
            make(fresh)
        fresh.rename(target)


def _forget_old(kind: str, newest: pathlib.Path) -> None:
    """Removes all but the last used; a machine that runs keeps its open files."""
    others = [path for path in folder().glob(f"{kind}-*") if path != newest]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
