"""A certificate authority for tests, by the openssl program."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Authority:
    """A CA in a directory, and what it has signed."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder = folder
        self.certificate, self._key = folder / f"{name}.crt", folder / f"{name}.key"
        self._openssl(
            *("req", "-x509", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign"),
            *(*_NEW_KEY, "-keyout", self._key, "-out", self.certificate),
        )

    def sign(self, name: str) -> tuple[Path, Path]:
        """A certificate for 127.0.0.1 and a key."""
        return self.sign_for(name, "IP:127.0.0.1,DNS:kubernetes.test")

    def sign_for(self, name: str, names: str) -> tuple[Path, Path]:
        """A certificate with these subject alternative names, and a key."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        self._openssl(
            *("req", "-x509", "-days", "2", "-subj", f"/CN={name}"),
            *("-CA", self.certificate, "-CAkey", self._key),
            *("-addext", f"subjectAltName={names}"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *(*_NEW_KEY, "-keyout", key, "-out", certificate),
        )
        return certificate, key

    def serving(self) -> ssl.SSLContext:
        """For a server that asks clients for certificates, and takes those without, too."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.certificate)
        context.load_cert_chain(*self.sign("server"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _openssl(self, *arguments: str | Path) -> None:
        subprocess.run(
            ["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60
        )


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
