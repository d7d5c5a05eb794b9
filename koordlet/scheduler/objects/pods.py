"""A Pod as the scheduler sees it: who it is, and the class that it shares with its equals.

Covers: the values. Does not cover: making them of objects (``decoder``), where pods are
(``scheduler.cluster.columns``).

Everything that a filter or a score may look at is in ``PodClass``; name, priority, age and node are
in ``Pod``. Two pods with one class therefore always get the same verdicts at the same moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi.pod_groups import Membership
from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import devices
from koordlet.scheduler.objects import (
    eviction_marks,
    extended_resources,
    pod_claims,
    requests,
    terms,
)
from koordlet.scheduler.objects.wire import Body
from koordlet.scheduler.reservation.spec import ReservePodTraits


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod takes."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """An entry of a pod's ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class PodClass:
    """What decides where a pod may go; compared by identity."""

    namespace: str
    labels: Mapping[str, str]
    scheduler: str
    requests: requests.Requests
    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    #: ``None``: nothing is required; empty: nothing can match.
    required: tuple[terms.NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, terms.NodeTerm], ...] = ()
    tolerations: tuple[terms.Toleration, ...] = ()
    affinity: tuple[terms.PodTerm, ...] = ()
    anti_affinity: tuple[terms.PodTerm, ...] = ()
    prefers: tuple[tuple[int, terms.PodTerm], ...] = ()
    avoids: tuple[tuple[int, terms.PodTerm], ...] = ()
    spread: tuple[terms.SpreadConstraint, ...] = ()
    ports: frozenset[HostPort] = frozenset()
    images: tuple[str, ...] = ()
    containers: int = 0
    features: frozenset[str] = frozenset()
    volumes: tuple[Body, ...] = ()
    references: tuple[OwnerReference, ...] = ()
    #: Those annotations that decide, as they are spelled.
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: The reservations that may serve it; ``reservation.claims.claim_of`` reads it.
    claim: object = None
    #: Resources that classes of devices may serve.
    extended: tuple[extended_resources.ContainerResource, ...] = ()
    #: Those that one serves now: a node without them may give devices instead.
    claimable: frozenset[str] = frozenset()
    #: What its resource claims ask for; ``plugins.dynamic_resources`` reads it.
    demand: object = None
    #: How it reserves; only for reserve pods.
    reserving: ReservePodTraits | None = None
    #: The peers' priority class: ``koord-prod``, ``koord-mid``, ``koord-batch``, ``koord-free``.
    band: str = "koord-prod"
    #: What it asks for and this scheduler lacks, as a message (``unserved``).
    unsupported: str = ""

    @property
    def adopts(self) -> bool:
        """Whether its reservation takes over from running pods, and so chooses when they end."""
        return self.reserving is not None and self.reserving.adopting is not None

    @property
    def owner(self) -> tuple[str, str]:
        """Kind and name of its controller; empty where it has none."""
        owners = ((owner.kind, owner.name) for owner in self.references if owner.controller)
        return next(owners, ("", ""))

    @property
    def termed(self) -> bool:
        """Whether it has terms about other pods."""
        return bool(self.affinity or self.anti_affinity or self.prefers or self.avoids)


@dataclass(slots=True, kw_only=True, eq=False)
class Pod:
    """One pod."""

    namespace: str
    name: str
    uid: str
    pod_class: PodClass
    priority: int
    #: RFC 3339 in UTC: sorts as text. Empty where it is unknown.
    created: str
    started: str = ""
    position: int = 0
    node: str
    terminating: bool
    preempts: bool = False
    gates: tuple[str, ...] = ()
    nominated: str = ""
    #: The UID of the reservation whose place it keeps: empty for pods that run.
    reserve_pod_of: str = ""
    #: The UID of the pod that it would replace: empty for pods that there are.
    replaces: str = ""
    #: The UID of the reservation that it takes its room from, and that one's name.
    draws_on: str = ""
    drawn_name: str = ""
    #: It runs, and is itself room for others: the peer's operating mode ``Reservation``.
    operates: bool = False
    #: What the store says of it while it has no node: reason and message of its condition
    #: ``PodScheduled``, the node that it is nominated for, the generation that the condition is of.
    stored_condition: tuple[str, str, str, int] = ("", "", "", 0)
    #: CPUs of its own, and its amounts by NUMA node, where it has some.
    cpus: cpuset.CPUSet | None = None
    parts: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    #: Its parts of single devices.
    devices: tuple[devices.Slice, ...] = ()
    #: The claims of devices that it names.
    claims: tuple[pod_claims.PodClaim, ...] = ()
    #: What it says of its gang; ``None``: it is in none.
    gang: Membership | None = None
    #: A scheduler has sent it away for a more important one.
    preempted: bool = False
    #: Its phase is Running.
    running: bool = False
    #: Its condition Ready is True.
    ready: bool = False
    #: It says so, and may be moved without a controller.
    movable: bool = False
    #: Why it must not be moved, of what it says itself; empty: it may be.
    immovable: str = ""
    #: How its end began; ``None``: it has not.
    leaving: eviction_marks.Leaving | None = None
    #: How often its specification has changed, as the store counts; 0: it does not.
    generation: int = 0
    #: When it got its node, in seconds since 1970; 0 where nobody says.
    assigned: float = 0.0
    #: When its init containers had ended, likewise.
    initialized: float = 0.0
    #: ``namespace/name``: one text for all who keep the pod by it.
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.namespace}/{self.name}"

    @property
    def up(self) -> bool:
        """Whether it serves: ready and not ending."""
        return self.ready and not self.terminating

    @property
    def chosen(self) -> bool:
        """Whether anything was chosen for it by number."""
        return bool(self.cpus or self.parts or self.devices)

    def name_claims(self, claims: tuple[pod_claims.PodClaim, ...]) -> None:
        """Learn the names of claims that were made for it."""
        self.claims = claims

    def nominate(self, node: str) -> None:
        """Be nominated for a node; empty: for none."""
        self.nominated = node

    def inherit(self, other: Pod) -> None:
        """Have what was chosen for an older value of the same pod: the store has yet to say it."""
        self.draws_on, self.drawn_name = other.draws_on, other.drawn_name
        self.cpus, self.parts, self.devices = other.cpus, other.parts, other.devices


@dataclass(frozen=True, slots=True)
class Priority:
    """A PriorityClass."""

    value: int
    preempts: bool
    default: bool
