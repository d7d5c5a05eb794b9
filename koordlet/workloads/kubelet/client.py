"""A GET to the kubelet: the body, or a reason that names the fix.

Covers: TLS with the cluster's CA, a token that rotates, the read-only port, what may be answered,
how long answers took.
Does not cover: connections, sizes, deadlines (``http.client``), what the body says.

Rules:
1. Token and CA are looked at for each request: a rotated one is used at once.
2. A kubelet without a certificate of the cluster makes one for itself at its first start (kubeadm's
   default): ``pki/kubelet.crt`` in its directory, for the name of the host. Who can write there can
   be the kubelet, so that file is believed beside the CA, and it need not exist.
3. Its certificate may name the address, the node or the host: each is tried, unless one is set.
4. Only a 200 with JSON is an answer: a proxy's error page is no list of pods.
5. Every failure is an ``Unreachable`` that names the address and what to do.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from koordlet.http import certificates
from koordlet.http import client as http
from koordlet.model import errors, spread
from koordlet.model.record import dataclass

#: 250 pods are 2-5 MB; what is larger than this is no list of pods of one node.
MAX_BYTES = 32 << 20
_MAX_TOKEN = 64 << 10
_OK = 200
#: Of an answer that did not come, where others have a status.
_NONE = "<error>"
#: Seconds: from a millisecond to more than a request may take, as Koordinator's agent has them.
_BOUNDS = (0.001, 0.004, 0.016, 0.064, 0.256, 1.024, 4.096)

_FIXES = {
    401: "the token was rejected: check that the service account of kubelet.tokenFile exists",
    403: "let the service account get nodes/pods, nodes/configz, nodes/stats, nodes/proxy",
    404: "this kubelet does not serve the path; the read-only port has no configz",
}


class Unreachable(errors.KoordletError):
    """No answer that can be used."""

    code = "kubelet"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletEndpoint:
    """Address and credentials of the kubelet."""

    host: str
    port: int
    #: False: the read-only port, without TLS and without a token.
    secure: bool = True
    #: Empty: the system's certificate authorities.
    ca: str = ""
    #: The certificate that the kubelet made for itself; empty: not believed.
    own: str = ""
    #: Empty: no token is sent.
    token: str = ""
    #: False: whoever answers is believed. Only for kubelets with self-signed certificates.
    verify: bool = True
    #: Names that its certificate may have; none: the host.
    names: tuple[str, ...] = ()
    seconds: float = 3.0
    max_bytes: int = MAX_BYTES


class KubeletClient:
    """Asks one kubelet."""

    def __init__(
        self, endpoint: KubeletEndpoint, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.endpoint = endpoint
        #: Seconds by path and status; ``_NONE`` where there was no answer.
        self.took: dict[tuple[str, str], spread.Spread] = {}
        self._clock = clock
        self._mark: object = ()
        #: The one that was right, or is tried next, is the first.
        self._names = endpoint.names or (endpoint.host,)
        self._http: http.HttpClient | None = None

    async def get(self, path: str) -> bytes:
        """The body of a 200 with JSON."""
        began, status = self._clock(), _NONE
        try:
            answer = await self._answer(path)
            status = str(answer.status)
        except http.CertificateError as error:
            raise self._wrong(path, error.message, self._distrust()) from error
        except http.TransportError as error:
            raise self._wrong(
                path, error.message, "check that the kubelet runs and listens on this port"
            ) from error
        except OSError as error:
            raise Unreachable(
                error.strerror or str(error),
                culprit=str(error.filename or self.endpoint.ca),
                fix="correct the section kubelet",
            ) from error
        finally:
            key = (path.partition("?")[0], status)
            before = self.took.get(key) or spread.Spread.empty(_BOUNDS)
            self.took[key] = before.with_one(self._clock() - began)
        if answer.status != _OK:
            fix = _FIXES.get(answer.status, "")
            raise self._wrong(path, f"returned {answer.status}", fix)
        kind = answer.headers.get("content-type", "")
        if "json" not in kind:
            media_type = kind[:40] if kind.isprintable() else ""
            raise self._wrong(
                path, f"returned {media_type or 'no type'}, not JSON", "check kubelet.address"
            )
        return answer.body

    async def _answer(self, path: str) -> http.ClientResponse:
        for _ in self._names[1:]:
            asked = self._client()
            try:
                return await asked.request("GET", path, self._headers())
            except http.CertificateError:
                # Others ask at the same time, and the name is no longer this one after the first.
                if asked is self._http:
                    self._http, self._names = None, (*self._names[1:], self._names[0])
        return await self._client().request("GET", path, self._headers())

    def _distrust(self) -> str:
        believed = " or ".join(filter(None, (self.endpoint.ca, self.endpoint.own)))
        return (
            "set kubelet.caFile to who signed its serving certificate, where that is not"
            f" {believed or 'an authority of the system'}; kubelet.serverName to a name in it,"
            f" where that is none of {', '.join(self._names)}"
        )

    def close(self) -> None:
        """Cut the connections."""
        if self._http is not None:
            self._http.close()

    def _client(self) -> http.HttpClient:
        """Made anew when the CA's file changes."""
        where = self.endpoint
        mark: object = None
        if where.secure and where.ca:
            mark = certificates.stamp(Path(where.ca))
        if where.secure and where.own:
            with contextlib.suppress(OSError):
                mark = mark, certificates.stamp(Path(where.own))
        if self._http is None or mark != self._mark:
            self.close()
            limits = http.ClientLimits(
                connections=4,
                connect_seconds=where.seconds,
                answer_seconds=where.seconds,
                body_bytes=where.max_bytes,
            )
            tls = self._tls() if where.secure else None
            endpoint = http.HttpEndpoint(where.host, where.port, tls, self._names[0])
            self._mark, self._http = mark, http.HttpClient(endpoint, limits)
        return self._http

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.endpoint.ca or None)
        if self.endpoint.own:
            # Not there, or being written: who answers is believed by the CA alone, or not at all.
            with contextlib.suppress(OSError):
                context.load_verify_locations(self.endpoint.own)
        if not self.endpoint.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _headers(self) -> http.Headers:
        common = (("accept", "application/json"), ("user-agent", "koordlet"))
        if not (self.endpoint.token and self.endpoint.secure):
            return common
        with Path(self.endpoint.token).open("rb") as file:
            token = file.read(_MAX_TOKEN).decode("latin-1").strip()
        if not (token and token.isprintable() and token.isascii()):
            raise Unreachable(
                "contains no token", culprit=self.endpoint.token, fix="set kubelet.tokenFile"
            )
        return (*common, ("authorization", f"Bearer {token}"))

    def _wrong(self, path: str, what: str, fix: str) -> Unreachable:
        scheme = "https" if self.endpoint.secure else "http"
        host = f"[{self.endpoint.host}]" if ":" in self.endpoint.host else self.endpoint.host
        where = f"kubelet {scheme}://{host}:{self.endpoint.port}{path}"
        return Unreachable(what, culprit=where, fix=fix)
