"""Access to gRPC methods: rights by certificate, call rates by address.

Covers: the list of names that are let in, rights of each, token buckets.
Does not cover: TLS itself (``tls``), the credentials of a Unix socket's peers (``peers``).

Rules:
1. Who came through the Unix socket has every right: its mode and ``peers`` decided who that is.
2. Over TCP a caller has the rights of the rules that one of its names matches, and none otherwise.
   A rule's name is exact, or begins with ``*.`` for one more label of DNS.
3. Calls are counted for each address (a Unix socket is one), in a bounded table.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import grpc

from koordlet.model.record import dataclass
from koordlet.rpc import permissions, services

#: Addresses that are remembered; who falls out begins with a full bucket.
_MOST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """One line of the list."""

    name: str
    rights: frozenset[permissions.Right]

    def matches(self, name: str) -> bool:
        """Rule 2."""
        if not self.name.startswith("*."):
            return name == self.name
        label, _, rest = name.partition(".")
        return bool(label) and rest == self.name[2:]


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class CallAccess:
    """Decides about calls."""

    def __init__(
        self,
        rules: Sequence[AccessRule] = (),
        *,
        rate: float = 100.0,
        burst: float = 400.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = tuple(rules)
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self.refused = 0

    def rights(self, names: Iterable[str]) -> frozenset[permissions.Right]:
        """Rights of a certificate with these names."""
        matching = (rule for name in names for rule in self._rules if rule.matches(name))
        return frozenset(right for rule in matching for right in rule.rights)

    async def check(self, context: services.Context, rights: frozenset[permissions.Right]) -> None:
        """End the call that is too much, or whose caller has none of the rights."""
        if not self.spend(context.peer()):
            self.refused += 1
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls per second: slow down"
            )
        if not services.secured(context):
            return
        names = services.names(context)
        if not rights & self.rights(names):
            self.refused += 1
            who = ", ".join(names) or "the client certificate contains no names"
            least = rights - {permissions.Right.ADMIN} or rights
            wanted = " or ".join(right.value for right in permissions.Right if right in least)
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, f"{who} lacks the right to {wanted}"
            )

    def spend(self, peer: str) -> bool:
        """True if another call of this address is within its rate."""
        # A port is new with every connection; the machine behind it is not.
        address = peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer
        now = self._clock()
        bucket = self._buckets.pop(address, None) or _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        self._buckets[address] = bucket
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
