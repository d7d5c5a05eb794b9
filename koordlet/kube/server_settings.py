"""Address of an API server and who asks, as read; and the settings of a pod's service account.

Covers: the account, TLS of the settings, the proxy of the environment.
Does not cover: kubeconfigs (``kubeconfig``), when to read again (``credentials``).
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PemSource:
    """Certificates or a key: a file, or their text; with neither there are none."""

    path: Path | None = None
    text: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.path or self.text)

    def read(self) -> str:
        """The text."""
        return self.text if self.path is None else self.path.read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What there is to know of an API server before the first request."""

    #: Its URL.
    server: str
    #: The header of who asks; empty: a certificate says so, or nobody.
    authorization: str = field(default="", repr=False)
    #: Headers of whom the server is to take us for; empty: for who asks.
    impersonation: tuple[tuple[str, str], ...] = ()
    authority: PemSource = PemSource()
    certificate: PemSource = PemSource()
    key: PemSource = PemSource()
    #: Whether the server's certificate has to be good.
    verifies: bool = True
    #: What the certificate must say; empty: the host of the URL.
    server_name: str = ""
    #: URL of a proxy; empty: what the environment says.
    proxy: str = ""
    #: The files that it was read from.
    files: tuple[Path, ...] = ()
    #: Seconds since 1970 after which it is void; ``None``: nobody knows.
    expires: float | None = None

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What every request says of who asks."""
        who = (("authorization", self.authorization),) if self.authorization else ()
        return (*who, *self.impersonation)

    @property
    def parts(self) -> urllib.parse.SplitResult:
        """The parts of the URL; ``ValueError`` where it is none of a server."""
        parts = _split(self.server.rstrip("/"))
        if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
            msg = f"not a server address: {self.server.rpartition('@')[2][:200]!r}"
            raise ValueError(msg)
        return parts

    def tls(self) -> ssl.SSLContext:
        """The context of its connections."""
        for source in (self.authority, self.certificate, self.key):
            if source.path is not None:
                source.path.stat()  # ssl would not say which file is not there
        trusted = self.authority
        context = ssl.create_default_context(cafile=trusted.path, cadata=trusted.text or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Set since Python 3.13: it refuses certificates that clusters have and kubectl takes.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate.path and not self.key.text:
            context.load_cert_chain(self.certificate.path, self.key.path, _no_password)
        elif self.certificate:
            _present(context, self.certificate.read(), self.key.read())
        return context

    def through(self, environment: Mapping[str, str] = os.environ) -> tuple[str, int] | None:
        """Host and port of the proxy on the way to the server; ``None``: there is none."""
        url = self.proxy
        if not url:
            url = _variable(environment, f"{self.parts.scheme}_proxy")
            if not url or _spared(self.parts, _variable(environment, "no_proxy")):
                return None
            if "://" not in url:
                url = f"http://{url}"
        parts = _split(url)
        if parts is None or parts.scheme != "http" or not parts.hostname or "@" in url:
            scheme = "such an address" if parts is None else f"{parts.scheme[:20]}://"
            msg = f"only plain http proxies without a password are supported, not {scheme}"
            raise ValueError(msg)
        return parts.hostname, parts.port or 80


def service_account(
    token: Path, authority: Path, environment: Mapping[str, str] = os.environ
) -> ServerSettings:
    """Those of the pod that this runs in."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{key}", "") for key in ("HOST", "PORT"))
    if not host or not port:
        msg = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT name no server"
        raise ValueError(msg)
    spelled = token.read_text().strip()
    if not spelled or not authority.stat().st_size:
        msg = "the token or the certificate of the authority is empty"
        raise ValueError(msg)
    return ServerSettings(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorization=f"Bearer {spelled}",
        authority=PemSource(path=authority),
        files=(token, authority),
    )


def _split(url: str) -> urllib.parse.SplitResult | None:
    """The parts of a URL; ``None`` where it is none: the error would show a part of it."""
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _no_password() -> str:
    """Called for a key that has one, instead of a question at the terminal."""
    msg = "the client key has a password, which nobody is asked for: store it without one"
    raise ValueError(msg)


def _present(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Have a context show a certificate. OpenSSL wants a file; this one is on no disk."""
    file = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with open(file, "w", closefd=False) as written:
            written.write(f"{certificate}\n{key}\n")
        context.load_cert_chain(f"/proc/self/fd/{file}", password=_no_password)
    finally:
        os.close(file)


def _variable(environment: Mapping[str, str], name: str) -> str:
    """A variable in small letters, else in capitals.

    kubectl reads these two and not ``ALL_PROXY``, which often names a proxy that is not HTTP.
    """
    return environment.get(name) or environment.get(name.upper()) or ""


def _spared(server: urllib.parse.SplitResult, rules: str) -> bool:
    """Whether ``no_proxy`` has a rule for a server: its name, a domain, a network, or ``*``.

    This machine itself needs none.
    """
    host = (server.hostname or "").lower()
    if host == "localhost" or _within(host, "127.0.0.0/8") or _within(host, "::1"):
        return True
    names = (host, server.netloc.rpartition("@")[2].lower())
    for rule in filter(None, map(str.strip, rules.lower().split(","))):
        domain = rule.removeprefix("*").lstrip(".")
        if rule == "*" or _within(host, rule):
            return True
        if any(name == domain or name.endswith(f".{domain}") for name in names):
            return True
    return False


def _within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
