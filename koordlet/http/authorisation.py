"""Authorization: the one check that every request passes before its handler.

Covers: the verdict, the policy of a loopback server, the guard against DNS rebinding.
Does not cover: TLS (``certificates``) and tokens (``tokens``, of the same type).

Rules:
1. The verdict is made from the head of the request: a body is read only from those allowed.
2. A function may answer later (it returns an awaitable), for a decision that somebody else makes.
3. A web page in a browser on this machine can reach loopback by pointing its own name at 127.0.0.1
   (DNS rebinding). So a request from loopback must call us by an IP address or a loopback name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable

from koordlet.http import message, routes
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    """Allowed, or the response that says why not."""

    refusal: message.HttpResponse | None = None

    @property
    def allowed(self) -> bool:
        """True where the handler may answer."""
        return self.refusal is None


Authorise = Callable[[message.HttpRequest, message.Peer], AccessVerdict | Awaitable[AccessVerdict]]

ALLOWED = AccessVerdict()

_NAME = re.compile(r"(?:[a-z0-9-]+\.)*localhost\.?\Z")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:]*)(?::\d{0,5})?\Z")


def local_readers(request: message.HttpRequest, peer: message.Peer) -> AccessVerdict:
    """Allow reading from loopback addresses, and nothing else."""
    if not peer.loopback:
        return AccessVerdict(
            message.error(
                403,
                "forbidden",
                "this address answers only clients on the same machine",
                culprit=peer.host,
                fix="send the request from the machine itself, or set report.http.secure",
            )
        )
    if request.method not in {"GET", "HEAD"}:
        return AccessVerdict(routes.not_allowed(request, "GET, HEAD"))
    return ALLOWED


def rebound(request: message.HttpRequest, peer: message.Peer) -> AccessVerdict:
    """Refuse a request whose ``Host`` header names another server (DNS rebinding)."""
    host = request.headers.get("host")
    # Browsers always send one; HTTP/1.1 without it is refused by the parser.
    if not peer.loopback or host is None or is_local_name(host):
        return ALLOWED
    return AccessVerdict(
        message.error(
            421,
            "misdirected",
            "the Host header does not name this server",
            culprit=host[:200],
            fix="use localhost or an IP address",
        )
    )


def is_local_name(host: str) -> bool:
    """True if a ``Host`` header is an IP address or a loopback name."""
    match = _HOST.match(host)
    if match is None:
        return False
    name = match[1].strip("[]").lower()
    return bool(_NAME.match(name)) or address(name) is not None


def peer(name: object, *, secure: bool) -> message.Peer:
    """Identify the client from the socket's peer name."""
    host, port = (str(name[0]), int(name[1])) if isinstance(name, tuple) else ("", 0)
    where = address(host)
    local = where is not None and where.is_loopback
    return message.Peer(host=host, port=port, loopback=local, secure=secure)


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An IP address, with IPv4 in IPv6 unwrapped and the zone cut off; ``None`` for a name."""
    try:
        parsed = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed
