"""Credentials at the other end of a Unix socket, with real sockets."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from koordlet.rpc import unix_socket


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
