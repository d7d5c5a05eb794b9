"""Permissions: one row for every method of every service.

Covers: the table. Does not cover: holding calls against it (``guard``), which rights a certificate
has (``access``), which node a caller speaks for (``speakers``).

Rules:
1. A method without a row is not served: a server with one does not start.
2. One of the rights of its row is enough; ``admin`` has every right.
3. The Unix socket is its owner's (``peers``), who may ask for everything about everybody.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from koordlet.model.record import dataclass
from koordlet.rpc.gen import scheduler_pb2


class Right(enum.Enum):
    """A right of a caller."""

    #: Look at anything.
    READ = "read"
    #: Speak for a node, and be told what that node shall run.
    REPORT = "report"
    #: Make and remove reservations.
    RESERVE = "reserve"
    #: Everything.
    ADMIN = "admin"


class About(enum.Enum):
    """Node that a call concerns."""

    #: The process that answers, and the node it runs on where it is an agent.
    SERVER = "the server"
    #: The node that the caller speaks for, and no other.
    OWN = "the caller's own node; an admin about any"
    #: That node, named by the first message of a stream (``ingest``); admins are no exception.
    STREAM = "the caller's own node, also for an admin"
    #: Every node, pod and reservation.
    ALL = "everybody"


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPermission:
    """Permission of one method."""

    rights: frozenset[Right]
    about: About
    #: Of ``About.OWN``: the node that a request names.
    node: Callable[[bytes], str] | None = None

    @property
    def changes(self) -> bool:
        """True if the method changes state."""
        return Right.READ not in self.rights


def _row(
    about: About, *rights: Right, node: Callable[[bytes], str] | None = None
) -> MethodPermission:
    return MethodPermission(rights=frozenset((*rights, Right.ADMIN)), about=about, node=node)


def _watched(request: bytes) -> str:
    node: str = scheduler_pb2.WatchAssignmentsRequest.FromString(request).node
    return node


_ANY = _row(About.SERVER, *Right)
_FEED = _row(About.SERVER, Right.READ)
_LOOK = _row(About.ALL, Right.READ)
_RESERVE = _row(About.ALL, Right.RESERVE)

#: ``package.Service/Method``.
METHODS: Mapping[str, MethodPermission] = {
    "grpc.health.v1.Health/Check": _ANY,
    "grpc.health.v1.Health/List": _ANY,
    "grpc.health.v1.Health/Watch": _ANY,
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _ANY,
    "koordlet.v1.Moves/MovePods": _row(About.ALL),
    "koordlet.v1.Moves/UndoDrain": _row(About.ALL),
    "koordlet.v1.Moves/ListObjects": _row(About.ALL),
    "koordlet.v1.NodeFeed/GetNode": _FEED,
    "koordlet.v1.NodeFeed/WatchNode": _FEED,
    "koordlet.v1.NodeIngest/Report": _row(About.STREAM, Right.REPORT),
    "koordlet.v1.Reservations/GetReservation": _LOOK,
    "koordlet.v1.Reservations/ListReservations": _LOOK,
    "koordlet.v1.Reservations/WatchReservations": _LOOK,
    "koordlet.v1.Reservations/DescribeReservation": _LOOK,
    "koordlet.v1.Reservations/CreateReservation": _RESERVE,
    "koordlet.v1.Reservations/DeleteReservation": _RESERVE,
    "koordlet.v1.Scheduler/ListNodes": _LOOK,
    "koordlet.v1.Scheduler/Explain": _LOOK,
    "koordlet.v1.Scheduler/DeleteQuota": _row(About.ALL),
    "koordlet.v1.Scheduler/WatchAssignments": _row(About.OWN, Right.REPORT, node=_watched),
    "koordlet.v1.Scheduler/Submit": _row(About.ALL),
}


def who(method: str) -> str:
    """Rights and whom it is about, for a table: ``report, admin | the caller's own node``."""
    row = METHODS[method]
    rights = ", ".join(right.value for right in Right if right in row.rights)
    return f"{rights} | {row.about.value}"
