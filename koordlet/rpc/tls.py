"""gRPC credentials of files that are looked at again at every handshake.

Covers: credentials of listeners and of connections. Does not cover: a rotation of the files
(``http.certificates``), who is let in (``access``).

Client certificates are always demanded: TCP without mTLS does not exist here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import grpc

from koordlet.http import certificates


class TlsFiles(NamedTuple):
    """Paths of certificate, key and authority."""

    certificate: Path
    key: Path
    #: Whose certificates are believed.
    authority: Path


def _rotating(files: TlsFiles) -> certificates.Rotating[list[bytes]]:
    return certificates.Rotating(
        files,
        lambda: [path.read_bytes() for path in files],
        kept_event="tls.kept",
        fix="set --tls, or report.grpc.tls of the agent, to readable files",
    )


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """For a listener; what is on disk counts from the next handshake on."""
    rotating = _rotating(files)

    def newest() -> grpc.ServerCertificateConfiguration:
        certificate, key, authority = rotating.newest()
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)

    return grpc.dynamic_ssl_server_credentials(newest(), newest, require_client_authentication=True)


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """For one connection; a client that connects anew reads them anew."""
    certificate, key, authority = _rotating(files).newest()
    return grpc.ssl_channel_credentials(authority, key, certificate)
