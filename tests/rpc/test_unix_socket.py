"""The path of a socket."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from koordlet.model import errors
from koordlet.rpc import unix_socket


def bound(path: Path, *, listening: bool) -> socket.socket:
    """A socket file."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    if listening:
        listener.listen()
    return listener


def test_directory_of_ours(tmp_path: Path) -> None:
    """A directory that is not there is made, for us alone."""
    unix_socket.prepare(tmp_path / "run" / "k.sock")

    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_directory_of_others_is_left(tmp_path: Path) -> None:
    """The mode of a directory that is there is somebody's choice."""
    tmp_path.chmod(0o755)

    unix_socket.prepare(tmp_path / "k.sock")

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_directory_that_everybody_may_write(tmp_path: Path) -> None:
    """Where anybody may replace the socket there shall be none, unless the sticky bit protects."""
    tmp_path.chmod(0o777)
    with pytest.raises(errors.HostError, match="every user can write"):
        unix_socket.prepare(tmp_path / "k.sock")

    tmp_path.chmod(0o1777)
    unix_socket.prepare(tmp_path / "k.sock")


def test_stale_socket_is_replaced(tmp_path: Path) -> None:
    """A socket that nobody listens on is of a process that is dead."""
    path = tmp_path / "k.sock"
    bound(path, listening=False).close()

    unix_socket.prepare(path)

    assert not path.exists()


def test_live_socket_is_left(tmp_path: Path) -> None:
    """A socket that somebody listens on stays, and the error names it and the fix."""
    path = tmp_path / "k.sock"
    with bound(path, listening=True):
        with pytest.raises(errors.HostError, match="already listens there") as caught:
            unix_socket.prepare(path)

        assert path.exists()
    assert str(path) in caught.value.fix


def test_busy_socket_is_left(tmp_path: Path) -> None:
    """A listener whose queue is full is a listener, and does not make us wait."""
    path = tmp_path / "k.sock"
    waiting = []
    with bound(path, listening=False) as busy:
        busy.listen(0)
        for _ in range(4):
            caller = socket.socket(socket.AF_UNIX)
            caller.setblocking(False)  # noqa: FBT003 - the name of the standard library
            caller.connect_ex(str(path))
            waiting.append(caller)

        with pytest.raises(errors.HostError, match="already listens there"):
            unix_socket.prepare(path)
    for caller in waiting:
        caller.close()


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_is_no_socket_is_left(tmp_path: Path, kind: str) -> None:
    """A file that somebody put there is never removed."""
    path = tmp_path / "k.sock"
    if kind == "file":
        path.touch()
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("elsewhere")

    with pytest.raises(errors.HostError, match="not a socket"):
        unix_socket.prepare(path)

    assert path.is_symlink() or path.exists()


def test_path_too_long(tmp_path: Path) -> None:
    """The kernel's bound is said in our words."""
    with pytest.raises(errors.HostError, match="107 bytes"):
        unix_socket.prepare(tmp_path / ("x" * 100))


def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    """The agent starts without that surface and says why; any text is taken."""
    with pytest.raises(errors.HostError, match="not UTF-8"):
        unix_socket.prepare(tmp_path / "\udcff" / "k.sock")
    unix_socket.prepare(tmp_path / "ü" / "k.sock")


def test_directory_that_cannot_be(tmp_path: Path) -> None:
    """A file where the directory should be is named."""
    (tmp_path / "run").touch()

    with pytest.raises(errors.HostError, match="cannot create the socket"):
        unix_socket.prepare(tmp_path / "run" / "k.sock")


def test_foreign_connections_are_cut(tmp_path: Path) -> None:
    """One of a user that is not let in ends at the first look; others and other sockets stay."""
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            accepted, _ = listening.accept()
            with accepted:
                now = [0.0]
                friendly = unix_socket.Peers(path, {os.geteuid()}, clock=lambda: now[0])
                friendly.look()
                assert (friendly.cut, friendly.doubtful) == (0, False)
                client.sendall(b"x")
                assert accepted.recv(1) == b"x"

                strict = unix_socket.Peers(path, (), clock=lambda: now[0])
                strict.look()
                assert (strict.cut, strict.doubtful) == (1, True)
                assert client.recv(1) == b""
                strict.look()
                assert strict.cut == 1, "once"
                now[0] = 5.0
                assert not strict.doubtful
