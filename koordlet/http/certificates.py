"""Certificates as files, looked at again at every handshake; of HTTP and of gRPC.

Covers: reading, noticing a rotation, keeping the last good set, the context of an HTTPS listener.
Does not cover: who is let in (``tokens``, ``rpc.access``), gRPC's credentials (``rpc.tls``).

Rules:
1. A rotation needs no restart: the next handshake shows the new certificate.
2. A rotation that is under way (a certificate without its key, half a file) costs nothing: the last
   good set stays in force. So each set gets a context of its own: one that was half loaded would
   have lost the key that it had.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from koordlet import log
from koordlet.model import errors

if typing.TYPE_CHECKING:
    import ssl

Contents = TypeVar("Contents")


class Rotating(Generic[Contents]):
    """The newest good contents of files that belong together; ``read`` raises ``OSError``."""

    def __init__(
        self, files: Sequence[Path], read: Callable[[], Contents], *, kept_event: str, fix: str
    ) -> None:
        self._files = tuple(files)
        self._read = read
        self._kept_event = kept_event
        try:
            self._stamp = self._stamps()
            self._contents = read()
        except OSError as error:
            raise errors.HostError(
                f"cannot load the certificate: {error.strerror or error}",
                culprit=", ".join(map(str, self._files)),
                fix=fix,
            ) from error

    def newest(self) -> Contents:
        """Look at the files, and return what they contain."""
        try:
            stamp = self._stamps()
            if stamp != self._stamp:
                self._contents = self._read()
                self._stamp = stamp
        except OSError as error:
            log.get().warning(self._kept_event, detail=str(error))
        return self._contents

    def _stamps(self) -> tuple[object, ...]:
        return tuple(map(stamp, self._files))


def stamp(path: Path) -> tuple[int, int, int]:
    """Identity of a file's content, which changes with writing and replacing.

    Kubernetes swaps a symbolic link: the inode behind it is another one then.
    """
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


def context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Make the context of a listener, which shows the newest good pair."""
    import ssl  # noqa: PLC0415 -- gRPC, which reads certificates as well, brings a TLS of its own

    def bare() -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.set_alpn_protocols(["http/1.1"])
        return made

    def read() -> ssl.SSLContext:
        loaded = bare()
        loaded.load_cert_chain(certificate, key)
        return loaded

    def greeted(
        handshake: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _outer: ssl.SSLContext
    ) -> None:
        handshake.context = pair.newest()

    pair = Rotating(
        (certificate, key),
        read,
        kept_event="http.certificate_kept",
        fix="set --tls, or report.http.secure of the agent, to a readable PEM pair",
    )
    #: Asks for the newest pair whenever a client says hello, with or without a server's name.
    listening = bare()
    listening.sni_callback = greeted
    return listening
