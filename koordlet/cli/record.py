"""``koordlet record``: this machine, as the agent reads it, in one archive.

Covers: options, waiting between frames, the archive's layout, writing it atomically, progress.
Does not cover: what is recorded (``host.recording.contents``), what is left out
(``host.recording.redaction``).

The archive holds ``root/`` (the first state), ``frames/N.jsonl`` (what changed, frame 0 only says
when the first state was read), and ``manifest.json``. It appears under its name only when complete.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pathlib
import re
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import field

from koordlet.cli import options, output
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import contents, frames, roots
from koordlet.model import errors
from koordlet.model.record import dataclass

HELP = "write what the agent reads into one archive that every read command accepts"
EXAMPLES = """\
koordlet record node7.tar.gz                         two frames, a second apart
koordlet record node7.tar.gz --for 5m --every 10s
koordlet topology --root node7.tar.gz
koordlet record again.tar.gz --root node7.tar.gz --now 1790000000
"""

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h)?\Z")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MAX_FRAMES = 10_000
_SHORTEST = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Length, interval and clocks of a recording."""

    seconds: float = 1.0
    every: float = 1.0
    now: Callable[[], machine.Now] = machine.now
    wait: Callable[[float], None] = time.sleep
    progress: Callable[[str], None] = lambda _: None


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="OUT.tar.gz", help="the archive to write")
    parser.add_argument(
        "--for", dest="seconds", metavar="D", type=duration, default=1.0,
        help="how long to record, such as 30s or 5m (default 1s)",
    )  # fmt: skip
    parser.add_argument(
        "--every", metavar="I", type=duration, default=1.0,
        help="time between frames, at least 100ms (default 1s)",
    )  # fmt: skip
    options.root(parser)


def run(args: argparse.Namespace) -> int:
    """Record; Ctrl-C ends the recording early and keeps what there is."""
    shown = sys.stderr.isatty()
    plan = Plan(
        seconds=args.seconds,
        every=args.every,
        now=machine.now if args.now is None else _starting_at(args.now),
        progress=_on_terminal if shown else lambda _: None,
    )
    total = write(roots.open_root(args.root), args.out, plan)
    if shown:
        sys.stderr.write("\r\033[K")
    sys.stderr.write(f"{output.visible(args.out)}: {total}\n")
    return 0


def _starting_at(wall: float) -> Callable[[], machine.Now]:
    """A clock that shows ``--now`` first, and then goes on as clocks do."""
    start = machine.now().at

    def now() -> machine.Now:
        at = machine.now().at
        return machine.Now(at=at, wall=wall + at - start)

    return now


def duration(text: str) -> float:
    """``30s``, ``5m``, ``500ms``, ``1h``; a bare number is seconds."""
    match = _DURATION.match(text)
    if match is None:
        msg = f"not a duration such as 30s or 5m: {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return float(match[1]) * _SECONDS[match[2] or "s"]


def write(host: root.HostRoot, out: str, plan: Plan) -> str:
    """Write the archive; returns one line on what is in it."""
    count = _frame_count(plan)
    temporary = pathlib.Path(f"{out}.partial")
    try:
        with _archive(temporary) as archive:
            total = _Recording(archive, host, plan).all(count)
        temporary.replace(out)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        why = f"cannot be written: {error.strerror}"
        fix = "name a file in a directory that exists, with room, and that you may write to"
        raise errors.HostError(why, culprit=out, fix=fix, errno=error.errno) from error
    return total


@dataclass(slots=True)
class _Recording:
    """Writes one archive."""

    archive: tarfile.TarFile
    host: root.HostRoot
    plan: Plan
    memory: frames.FrameDigests = field(default_factory=frames.FrameDigests)

    def all(self, count: int) -> str:
        """The first state, ``count`` more frames, the manifest."""
        start = self.plan.now()
        for item in self.memory.first(contents.items(self.host)):
            _add_item(self.archive, item, start.wall)
            if self.memory.files % 500 == 0:
                self.plan.progress(f"{self.memory.files} files")
        files = self.memory.files
        _add(self.archive, "frames/0.jsonl", frames.frame(0, start, ()), start.wall)
        done = 1
        for number in range(1, count + 1):
            try:
                now, content = self._frame(number, start.at + number * self.plan.every)
            except KeyboardInterrupt:
                break
            _add(self.archive, f"frames/{number}.jsonl", content, now.wall)
            self.plan.progress(f"{files} files, frame {number} of {count}")
            done += 1
        about = frames.manifest(self.host, frames=done, files=files)
        _add(self.archive, "manifest.json", about, self.plan.now().wall)
        return f"{files} files, {done} frame{'s' if done > 1 else ''}"

    def _frame(self, number: int, due: float) -> tuple[machine.Now, bytes]:
        """Wait until it is due, then read everything again."""
        left = due - self.plan.now().at
        if left > 0:
            self.plan.wait(left)
        now = self.plan.now()
        changes = self.memory.changes(contents.items(self.host))
        return now, frames.frame(number, now, changes)


def _frame_count(plan: Plan) -> int:
    """Count the frames after the first state."""
    if plan.every < _SHORTEST:
        why = f"{plan.every:g}s is too short"
        raise errors.UsageError(why, culprit="--every", fix="at least 100ms")
    count = int(plan.seconds / plan.every + 1e-9)
    if count > _MAX_FRAMES:
        why = f"makes {count} frames, more than {_MAX_FRAMES}"
        raise errors.UsageError(why, culprit="--for", fix="a longer --every")
    return count


@contextlib.contextmanager
def _archive(path: pathlib.Path) -> Iterator[tarfile.TarFile]:
    """A new archive that only its owner may read, on disk when the block ends."""
    handle = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    with os.fdopen(handle, "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
            yield archive
        file.flush()
        os.fsync(file.fileno())


def _add_item(archive: tarfile.TarFile, item: contents.Item, wall: float) -> None:
    name = f"root{item.path}"
    if item.link is None:
        _add(archive, name, item.data, wall)
    else:
        archive.addfile(_member(name, wall, link=item.link))


def _add(archive: tarfile.TarFile, name: str, data: bytes, wall: float) -> None:
    archive.addfile(_member(name, wall, size=len(data)), io.BytesIO(data))


def _member(name: str, wall: float, *, size: int = 0, link: str | None = None) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    if link is not None:
        member.type, member.linkname = tarfile.SYMTYPE, link
    member.mode = 0o644
    member.mtime = int(wall)
    return member


def _on_terminal(text: str) -> None:
    sys.stderr.write(f"\r\033[Krecording: {text}")
    sys.stderr.flush()
