"""The path of a Unix socket: making room for it.

Covers: directory, modes, stale sockets. Does not cover: what is spoken on it.

Rules:
1. The socket is for its owner alone (0600); a directory that we make is, too (0700).
2. An existing socket is replaced only when nobody listens; what is no socket is never touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from koordlet.model import errors

#: ``sun_path`` of ``struct sockaddr_un``, without the final zero.
MAX_PATH = 107


def prepare(path: Path) -> None:
    """Make the path free to bind."""
    if len(os.fsencode(path)) > MAX_PATH:
        raise errors.HostError(
            f"the socket path exceeds {MAX_PATH} bytes",
            culprit=str(path),
            fix="set report.grpc.socket to a shorter path",
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_directory(path.parent)
        there = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise errors.HostError(
            f"cannot create the socket: {error.strerror}",
            culprit=error.filename or str(path),
            fix="set report.grpc.socket to a directory that the agent's user owns",
            errno=error.errno,
        ) from error
    if not stat.S_ISSOCK(there.st_mode):
        raise errors.HostError(
            "the path exists and is not a socket",
            culprit=str(path),
            fix="move it away, or set another report.grpc.socket",
        )
    if _listened(path):
        raise errors.HostError(
            "another program already listens there",
            culprit=str(path),
            fix=f"stop it (`ss -xlp src {path}` names the process), or set another"
            " report.grpc.socket",
        )
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Create files for their owner only: a chmod after bind would leave a gap."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def _check_directory(directory: Path) -> None:
    mode = directory.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise errors.HostError(
            "every user can write to the directory of the socket, and so replace it",
            culprit=str(directory),
            fix=f"chmod o-w {directory}",
        )


def _listened(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        # A listener whose queue is full would make us wait.
        probe.settimeout(0)
        return probe.connect_ex(os.fsencode(path)) not in {errno.ECONNREFUSED, errno.ENOENT}
