"""What a descheduler asks of a pod and a scheduler does not: its past, its volumes, its wishes.

Covers: decoding those fields. Does not cover: all else of a pod (``objects.decoder``), what follows
(``evictability``, the strategies).

Nonsense in an annotation or label is as if it were missing: it neither protects a pod nor gives it
up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import Body

_PEER = "descheduler.alpha.kubernetes.io"
EVICT, PREFER_NONE = f"{_PEER}/evict", f"{_PEER}/prefer-no-eviction"
EVICT_ONLY, IN_PROGRESS = f"{_PEER}/request-evict-only", f"{_PEER}/eviction-in-progress"
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
#: How a pod goes: a label of a pod, or of its migration job.
POLICY, POLICIES = "koordinator.sh/evict-policy", ("Eviction", "Delete", "SoftEviction")
#: An eviction cost that means "never".
NEVER = 2**31 - 1
_MIRROR, _SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The state of one container."""

    #: ``""``, ``init`` or ``ephemeral``.
    kind: str
    restarts: int = 0
    waiting: str = ""
    terminated: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class PodCondition:
    """A condition of a pod; ``since`` is 0 where nobody says."""

    type: str
    status: str
    reason: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTraits:
    """What the strategies and the evictor ask of a pod."""

    uid: str = ""
    phase: str = ""
    reason: str = ""
    #: Seconds since 1970; 0 where nobody says.
    created: float = 0.0
    started: float = 0.0
    containers: tuple[ContainerState, ...] = ()
    conditions: tuple[PodCondition, ...] = ()
    #: When a container that has no memory limit, nor has its pod, was killed for lack of memory: it
    #: was the node's. Of each container the status has the last two kills at most.
    node_ooms: frozenset[float] = frozenset()
    #: Names of its images, sorted; those of init containers do not tell replicas apart.
    images: tuple[str, ...] = ()
    local_storage: bool = False
    #: Claims by name; those that are made for the pod included.
    claims: tuple[str, ...] = ()
    resource_claims: bool = False
    #: A pod of the kubelet's own files, or its mirror.
    mirror: bool = False
    static: bool = False
    #: The annotations of both peers.
    evict: bool = False
    prefers_none: bool = False
    evict_only: bool = False
    evicting: bool = False
    eviction_cost: int = 0
    deletion_cost: int = 0
    #: How it goes, where it says so: ``Eviction``, ``Delete``, ``SoftEviction``.
    policy: str = ""
    #: Anything of the above that an evictor may ask for: most pods have nothing.
    marked: bool = field(init=False)

    def __post_init__(self) -> None:
        marked = (
            self.local_storage or self.claims or self.resource_claims or self.mirror or self.static
            or self.evict or self.prefers_none or self.evicting or self.eviction_cost
        )  # fmt: skip
        object.__setattr__(self, "marked", bool(marked))

    @property
    def ended(self) -> bool:
        """Whether it runs no more."""
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod on a node, as the descheduler sees it."""

    pod: Pod
    traits: PodTraits
    #: The row of its node.
    row: int


def decode(body: Body) -> PodTraits:
    """The traits of a pod; ``BadObjectError`` names the field that cannot be read."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    status = wire.mapping(body, "status")
    notes, labels = wire.mapping(meta, "annotations"), wire.mapping(meta, "labels")
    volumes = wire.bodies(spec, "volumes")
    name = wire.text(meta, "name")
    return PodTraits(
        uid=wire.text(meta, "uid"),
        phase=wire.text(status, "phase"),
        reason=wire.text(status, "reason"),
        created=_time(meta.get("creationTimestamp")),
        started=_time(status.get("startTime")),
        containers=tuple(_containers(status)),
        conditions=tuple(
            PodCondition(
                str(row.get("type") or ""),
                str(row.get("status") or ""),
                str(row.get("reason") or ""),
                _time(row.get("lastTransitionTime")),
            )
            for row in wire.bodies(status, "conditions")
        ),
        node_ooms=frozenset(_node_ooms(spec, status)),
        images=tuple(sorted(wire.text(row, "image") for row in wire.bodies(spec, "containers"))),
        local_storage=any(
            volume.get("emptyDir") is not None or volume.get("hostPath") is not None
            for volume in volumes
        ),
        claims=tuple(
            f"{name}-{wire.text(volume, 'name')}"
            if volume.get("ephemeral") is not None
            else wire.text(wire.mapping(volume, "persistentVolumeClaim"), "claimName")
            for volume in volumes
            if volume.get("persistentVolumeClaim") is not None
            or volume.get("ephemeral") is not None
        ),
        resource_claims=bool(wire.sequence(spec, "resourceClaims")),
        mirror=_MIRROR in notes,
        static=notes.get(_SOURCE, "api") != "api",
        evict=EVICT in notes,
        prefers_none=PREFER_NONE in notes,
        evict_only=EVICT_ONLY in notes,
        evicting=IN_PROGRESS in notes,
        eviction_cost=_cost(notes.get(EVICTION_COST)),
        deletion_cost=_cost(notes.get(DELETION_COST)),
        policy=policy if (policy := str(labels.get(POLICY))) in POLICIES else "",
    )


def _containers(status: Body) -> Iterator[ContainerState]:
    for kind, key in (
        ("init", "initContainerStatuses"),
        ("", "containerStatuses"),
        ("ephemeral", "ephemeralContainerStatuses"),
    ):
        for row in wire.bodies(status, key):
            state = wire.mapping(row, "state")
            terminated = state.get("terminated")
            ended = wire.mapping(state, "terminated")
            yield ContainerState(
                kind,
                wire.integer(row, "restartCount"),
                wire.text(wire.mapping(state, "waiting"), "reason"),
                wire.text(ended, "reason"),
                None if terminated is None else wire.integer(ended, "exitCode"),
            )


def _node_ooms(spec: Body, status: Body) -> Iterator[float]:
    """When containers were killed for lack of memory that was not their own limit."""
    several = [*wire.bodies(spec, "containers"), *wire.bodies(spec, "initContainers")]
    unlimited = {wire.text(row, "name") for row in several if not _limits_memory(row)}
    if _limits_memory(spec):
        return
    for key in ("initContainerStatuses", "containerStatuses"):
        for row in wire.bodies(status, key):
            for state in (wire.mapping(row, "state"), wire.mapping(row, "lastState")):
                ended = wire.mapping(state, "terminated")
                killed = wire.text(ended, "reason") == "OOMKilled"
                if killed and wire.text(row, "name") in unlimited:
                    yield _time(ended.get("finishedAt"))


def _limits_memory(part: Body) -> bool:
    return wire.mapping(wire.mapping(part, "resources"), "limits").get("memory") is not None


def _time(spelled: object) -> float:
    if spelled is None:
        return 0.0
    try:
        return moment.parse(spelled)
    except ValueError:
        return 0.0


def _cost(spelled: object) -> int:
    """A cost: a 32-bit integer without a plus or a leading zero, as controllers read it."""
    text = str(spelled) if isinstance(spelled, str) else ""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 10:
        return 0
    if len(text) > 1 and text.startswith("0"):
        return 0
    value = int(text)
    return value if -(2**31) <= value < 2**31 else 0
