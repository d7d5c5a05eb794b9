"""The server's certificate as files, looked at again at every handshake.

Covers: reading, noticing a rotation, keeping the last good pair. Does not cover: who is let in
(``tokens``), gRPC's certificates (``rpc.tls``).

Rules:
1. A rotation needs no restart: the next handshake shows the new certificate.
2. A rotation that is under way (a certificate without its key, half a file) costs nothing: the last
   good pair stays in force. So each pair gets a context of its own: one that was half loaded would
   have lost the key that it had.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from koordlet import log
from koordlet.model import errors


class Certificate:
    """The newest good pair; ``context`` is for a listener."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        try:
            self._stamp = self._stamps()
            self._newest = self._read()
        except (OSError, ssl.SSLError) as error:
            raise errors.HostError(
                f"cannot load the certificate: {error.strerror or error}",
                culprit=f"{certificate}, {key}",
                fix="set report.http.secure.{certificate,key} to a readable PEM pair",
            ) from error
        #: Asks for the newest pair whenever a client says hello, with or without a server's name.
        self.context = _bare()
        self.context.sni_callback = self._greeted

    def _greeted(
        self, handshake: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _outer: ssl.SSLContext
    ) -> None:
        self._look()
        handshake.context = self._newest

    def _look(self) -> None:
        try:
            stamp = self._stamps()
            if stamp == self._stamp:
                return
            found = self._read()
        except (OSError, ssl.SSLError) as error:
            log.get().warning("http.certificate_kept", detail=str(error))
            return
        self._stamp, self._newest = stamp, found

    def _stamps(self) -> tuple[object, ...]:
        # Kubernetes swaps a symbolic link: the inode behind it is another one then.
        found = [path.stat() for path in self._files]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)

    def _read(self) -> ssl.SSLContext:
        context = _bare()
        context.load_cert_chain(*self._files)
        return context


def _bare() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
