"""NRI messages about pods and containers, and the answers, as values.

Covers: the fields that matter, by their numbers in ``nri.pkg.api.v1alpha1``. Does not cover: calls
(``session``), what to answer (``koordlet.agent.nri.handler``).

Rule: only what is to be changed is sent. A runtime takes an empty text for "no change", and two
plugins that both set one field make the creation of a container fail.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field

from koordlet.model import adjustment
from koordlet.model.record import dataclass
from koordlet.workloads.nri import fields

#: Microseconds of a period, as every runtime sets it.
_PERIOD = 100_000


class NriEvent(enum.IntEnum):
    """NRI event types, by their numbers in the protocol."""

    RUN_POD_SANDBOX = 1
    STOP_POD_SANDBOX = 2
    REMOVE_POD_SANDBOX = 3
    CREATE_CONTAINER = 4
    POST_CREATE_CONTAINER = 5
    START_CONTAINER = 6
    POST_START_CONTAINER = 7
    UPDATE_CONTAINER = 8
    POST_UPDATE_CONTAINER = 9
    STOP_CONTAINER = 10
    REMOVE_CONTAINER = 11


#: What we ask to hear. All of it is known to every runtime since NRI 0.2: one unknown bit, and the
#: runtime closes the connection.
_UNHEARD = {NriEvent.STOP_POD_SANDBOX, NriEvent.POST_UPDATE_CONTAINER}
HEARD = tuple(event for event in NriEvent if event not in _UNHEARD)


def mask(events: Iterable[NriEvent]) -> int:
    """The bits of events."""
    return sum(1 << (event - 1) for event in set(events))


@dataclass(frozen=True, slots=True, kw_only=True)
class NriPod:
    """A sandbox."""

    id: str = ""
    uid: str = ""
    namespace: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: A path, or a slice where the runtime uses systemd.
    cgroup_parent: str = ""
    #: What all of it asked for, where the runtime was told; 0 elsewhere.
    cpu_shares: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NriContainer:
    """A container."""

    id: str = ""
    pod: str = ""
    name: str = ""
    #: A path, or ``slice:prefix:id`` where the runtime uses systemd.
    cgroup: str = ""
    #: The set that the runtime would give, or has given.
    cpus: str = ""
    #: Shares, quota in microseconds and bytes of memory; 0 or less where there is no such limit.
    shares: int = 0
    quota: int = 0
    memory: int = 0
    pid: int = 0


def pod(body: fields.Fields) -> NriPod:
    """A PodSandbox."""
    linux = fields.inside(body, 8)
    asked = fields.inside(linux, 2, 2, 1)
    return NriPod(
        id=fields.text(body, 1),
        name=fields.text(body, 2),
        uid=fields.text(body, 3),
        namespace=fields.text(body, 4),
        labels=fields.texts(body, 5),
        annotations=fields.texts(body, 6),
        cgroup_parent=fields.text(linux, 3),
        cpu_shares=fields.number(asked, 1),
    )


def container(body: fields.Fields) -> NriContainer:
    """A Container."""
    linux = fields.inside(body, 11)
    cpu = fields.inside(linux, 3, 2)
    return NriContainer(
        id=fields.text(body, 1),
        pod=fields.text(body, 2),
        name=fields.text(body, 3),
        cgroup=fields.text(linux, 5),
        cpus=fields.text(cpu, 6),
        shares=fields.number(fields.inside(cpu, 1), 1),
        quota=fields.number(fields.inside(cpu, 2), 1),
        memory=fields.number(fields.inside(linux, 3, 1, 1), 1),
        pid=fields.number(body, 12),
    )


def adjust(wanted: adjustment.Adjustment) -> bytes:
    """The answer to CreateContainer."""
    linux = _resources(wanted)
    return fields.encode((1, fields.encode((6, fields.encode((2, linux)))))) if linux else b""


def update(container_id: str, wanted: adjustment.Adjustment, *, may_fail: bool = False) -> bytes:
    """One ContainerUpdate."""
    linux = fields.encode((1, _resources(wanted)))
    tail = [(3, 1)] if may_fail else []
    return fields.encode((1, container_id), (2, linux), *tail)


def _resources(wanted: adjustment.Adjustment) -> bytes:
    quota = None
    if wanted.cpu_milli is not None:
        quota = -1 if wanted.cpu_milli < 0 else wanted.cpu_milli * _PERIOD // 1000
    cpu = fields.given(
        (1, _optional(wanted.cpu_shares)),
        (2, _optional(quota)),
        (3, _optional(None if quota is None else _PERIOD)),
        (6, str(wanted.cpus) if wanted.cpus else None),
        (7, str(wanted.mems) if wanted.mems else None),
    )
    memory = fields.given((1, _optional(wanted.memory_bytes)))
    rdt = wanted.resctrl_class
    return fields.given(
        (1, memory or None),
        (2, cpu or None),
        (5, None if rdt is None else fields.encode((1, rdt))),
    ) + fields.encode(*fields.table(6, wanted.unified))


def _optional(value: int | None) -> bytes | None:
    """A number in a message of its own, so that zero can be told from nothing."""
    return None if value is None else fields.encode((1, value))
