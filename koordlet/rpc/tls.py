"""Certificates from files, looked at again at every handshake.

Covers: reading, noticing a rotation, keeping the last good set. Does not cover: who is let in
(``access``).

Rules:
1. Client certificates are always demanded: TCP without mTLS does not exist here.
2. A rotation that is under way, or broken, costs nothing: the last good set stays in force.
"""

from __future__ import annotations

from pathlib import Path

import grpc

from koordlet import log
from koordlet.model import errors
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of certificate, key and authority."""

    certificate: Path
    key: Path
    #: Whose certificates are believed.
    authority: Path

    def all(self) -> tuple[Path, ...]:
        """In the order of the fields."""
        return (self.certificate, self.key, self.authority)


class Reloading:
    """The newest good contents of the files."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp: tuple[object, ...] = ()
        try:
            self.contents = self._read()
        except OSError as error:
            raise errors.HostError(
                f"cannot read the certificate: {error.strerror}",
                culprit=str(error.filename),
                fix="set --tls, or report.grpc.tls of the agent, to readable files",
            ) from error
        self._stamp = self._stamps()

    def changed(self) -> bool:
        """True if the files have new contents."""
        try:
            stamp = self._stamps()
            if stamp == self._stamp:
                return False
            contents = self._read()
        except OSError as error:
            log.get().warning("tls.kept", detail=str(error))
            return False
        self._stamp = stamp
        if contents == self.contents:
            return False
        self.contents = contents
        return True

    def _stamps(self) -> tuple[object, ...]:
        # Kubernetes swaps a symbolic link: the inode behind it is another one then.
        found = [path.stat() for path in self._files.all()]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)

    def _read(self) -> tuple[bytes, bytes, bytes]:
        certificate, key, authority = (path.read_bytes() for path in self._files.all())
        return certificate, key, authority


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """For a listener; what is on disk counts from the next handshake on."""
    held = Reloading(files)

    def configuration() -> grpc.ServerCertificateConfiguration:
        certificate, key, authority = held.contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)

    def fetch() -> grpc.ServerCertificateConfiguration:
        held.changed()
        return configuration()

    return grpc.dynamic_ssl_server_credentials(
        configuration(), fetch, require_client_authentication=True
    )


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """For one connection; a client that connects anew reads them anew."""
    certificate, key, authority = Reloading(files).contents
    return grpc.ssl_channel_credentials(authority, key, certificate)
