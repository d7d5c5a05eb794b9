"""network_qos: network bandwidth of each class, per link and direction.

Covers: the tree of classes of each link and direction, whose addresses are in which, when nothing
is shaped and why. Does not cover: reading and making trees (``host.devices.queueing``,
``apply.network``).

Rules:
1. The policy is off by default: queueing affects every program on the machine. A NodeSLO with
   ``netQOSPolicy: tc`` replaces the configuration; without a total bandwidth nothing is shaped.
2. Three classes as the peer has them: system (whatever nobody claims), latency-sensitive and
   best-effort, with 40, 30 and 30 percent for certain, up to the whole link, and asked in that
   order when there is something to borrow. A pod with a limit of its own has a class of its own
   below.
3. Packets are told apart by the addresses of pods. That is the same on cgroup v1 and v2, in both
   directions, and for every kernel with traffic control. ``net_cls`` (v1 alone, and a classifier
   module) and marks by cgroup path (nftables, sent packets only) know nothing about what arrives.
   The price: a pod in the network of the host cannot be told apart, nor what is translated or
   wrapped before it reaches the link. Such packets are in the system class. A pod in the network of
   the host that is best-effort, or has a limit of its own, says so in a condition of its own.
4. A qdisc of another program is never replaced: a condition names it.
5. A share is capped at the total, and a guaranteed rate at its limit.

* Formula: certain = percent * link, most = percent * link, by class
* Writes: queueing disciplines, classes and filters of the links to the world
* See: `tc class show dev LINK` beside `koordlet plan`
* Off: the trees are removed, and a link has its default queueing again
* More: network.md
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from koordlet.history import series
from koordlet.model import action, decision, plan, qos, quantity, queueing, snapshot, strategies
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.framework import declaration, proposals

STEM = "network_qos"
State = decision.Stateless

#: The node's own bandwidth, which counts before that of the strategy.
ANNOTATION = "node.koordinator.sh/network-bandwidth"
TC = "tc"
ROOT, SYSTEM, LS, BE = 1, 2, 3, 4
#: Who of a class has no class of its own: an inner class has no queue.
LS_REST, BE_REST = 0x13, 0x14
_REST = {LS: LS_REST, BE: BE_REST}
#: Where the classes of single pods begin, and how many there can be.
_OWN, _OWN_MOST = 0x100, 0xFE00
#: Percent for certain, by class; the order is that of borrowing.
_CERTAIN = {SYSTEM: 40, LS: 30, BE: 30}
_WHOLE = 100
#: The kernel counts bytes, and what is less than this is no rate at all.
_LEAST = 8_000
#: More than any link has: a typing error, not a bandwidth.
_MOST = 10**14


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces classes and total."""

    #: Bits per second; 0: nothing is shaped.
    total: int = 0
    #: Links; empty: those of the default routes.
    interfaces: tuple[str, ...] = ()
    #: Whether what arrives is shaped, too.
    ingress: bool = True
    classes: Mapping[int, strategies.NetworkQos] = field(default_factory=dict)
    #: No class and no pod is limited to fewer bits per second than this.
    least: int = 1_000_000


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the qdisc trees of all links, or explain why there are none."""
    proposal = proposals.Proposal(STEM, now, reason="NetworkQos")
    total, classes, why = _asked(now, settings)
    if why:
        proposal.why["bandwidth"] = why
        return proposal.decided(state)
    problems = list(now.links.problems)
    sides = (queueing.EGRESS, queueing.INGRESS) if settings.ingress else (queueing.EGRESS,)
    for direction in sides:
        value = queueing.text(tree(now.pods, total, classes, direction, settings.least))
        for link in now.links.links:
            there = link.side(direction)
            if not queueing.is_ours(there) and not queueing.is_free(there):
                problems.append(f"{link.name} {direction}: not shaped, another program set {there}")
                continue
            proposal.actions.append(
                action.SetQdisc(
                    target=queueing.target(link.name, direction),
                    value=value,
                    policy=STEM,
                    reason=f"{total} bit/s for system, latency-sensitive and best-effort work",
                )
            )
    if problems:
        proposal.say("NetworkNotShaped", "; ".join(problems))
    for pod_key in _unknown(now.pods):
        why = "its packets cannot be told from the host's (hostNetwork)"
        message = f"{pod_key}: {why}, so the system class counts them"
        proposal.say("NetworkNotTold", message, pod_key)
    proposal.why["bandwidth"] = f"{total} bit/s"
    proposal.why["links"] = ", ".join(link.name for link in now.links.links) or "none"
    return proposal.decided(state)


# What was asked for ------------------------------------------------------------------------------


def _asked(
    now: snapshot.Snapshot, settings: Settings
) -> tuple[int, Mapping[int, strategies.NetworkQos], str]:
    """Total bandwidth, classes, and the reason that nothing is shaped."""
    slo = now.cluster_slo
    total, classes = settings.total, settings.classes
    if slo is not None:
        if slo.network_policy != TC:
            return 0, {}, f"the NodeSLO's netQOSPolicy is {slo.network_policy}"
        names = {SYSTEM: "SYSTEM", LS: "LS", BE: "BE"}
        enabled = {number: slo.classes[name].network for number, name in names.items()}
        classes = {number: strategy for number, strategy in enabled.items() if strategy.enable}
        if not classes:
            return 0, {}, "no class of the NodeSLO has networkQOS enabled"
        total = slo.system.total_network_bandwidth or 0
    total = _annotated(now.node) or total
    if not _LEAST <= total <= _MOST:
        return 0, {}, "no valid total network bandwidth is configured"
    return total, classes, ""


def _annotated(node: snapshot.NodeInfo) -> int:
    """Bandwidth of the node's annotation; 0 where it is missing or unreadable."""
    text = node.annotations.get(ANNOTATION)
    try:
        return 0 if text is None else max(0, quantity.units(text))
    except ValueError:
        return 0


def _unknown(pods: Sequence[pods.Pod]) -> tuple[str, ...]:
    """Pods with hostNetwork that should not be in the system class."""
    return tuple(
        sorted(
            pod.key
            for pod in pods
            if pod.active
            and pod.host_network
            and (groups.is_best_effort(pod) or pod.wishes.network is not None)
        )
    )


# The tree ----------------------------------------------------------------------------------------


def tree(
    pods: Sequence[pods.Pod],
    total: int,
    classes: Mapping[int, strategies.NetworkQos],
    direction: str,
    least: int,
) -> queueing.Tree:
    """Build the classes and addresses of one direction."""
    whole = _bytes(total)
    least = min(whole, max(_LEAST, _bytes(least)))
    made = {ROOT: queueing.Class(0, whole, whole)}
    for place, (number, percent) in enumerate(_CERTAIN.items()):
        strategy = classes.get(number, strategies.NetworkQos())
        into = direction == queueing.INGRESS
        certain = _part(
            strategy.ingress_request if into else strategy.egress_request, total, percent
        )
        most = _part(strategy.ingress_limit if into else strategy.egress_limit, total, _WHOLE)
        most = max(least, most)
        made[number] = queueing.Class(ROOT, min(certain, most), most, place)
        if number in _REST:
            made[_REST[number]] = replace(made[number], parent=number)
    addresses: dict[str, int] = {}
    for pod in sorted(pods, key=lambda each: each.uid):
        class_name = _class_of(pod)
        if class_name is None or not pod.addresses:
            continue
        inside = _own(pod, class_name, direction, made, least)
        for address in pod.addresses:
            addresses.setdefault(address, inside)
    return queueing.Tree(SYSTEM, made, addresses)


def _class_of(pod: pods.Pod) -> int | None:
    """The class of a pod; ``None`` for the system class."""
    if not pod.active or pod.host_network or pod.raw_qos is qos.Qos.SYSTEM:
        return None
    return BE if groups.is_best_effort(pod) else LS


def _own(
    pod: pods.Pod, kind: int, direction: str, made: dict[int, queueing.Class], least: int
) -> int:
    """The class of a pod's packets: one of its own where it has a limit of its own.

    Its number comes from its UID, so that others keep theirs when it goes.
    """
    asked = pod.wishes.network
    limit = None
    if asked is not None:
        limit = asked.ingress if direction == queueing.INGRESS else asked.egress
    if not limit or len(made) > _OWN_MOST // 2:
        return _REST[kind]
    number = zlib.crc32(pod.uid.encode()) % _OWN_MOST
    while _OWN + number in made:
        number = (number + 1) % _OWN_MOST
    above = made[kind]
    most = min(above.ceil, max(least, _bytes(limit)))
    made[_OWN + number] = queueing.Class(kind, min(_LEAST, most), most, above.priority)
    return _OWN + number


def _part(asked: strategies.Share | None, total: int, percent: int) -> int:
    """A share of the total: never more than the total, never zero."""
    bits = None if asked is None else asked.bits
    if asked is not None and asked.percent is not None:
        percent = asked.percent
    amount = total * percent // 100 if bits is None else bits
    return max(_LEAST, _bytes(min(amount, total)))


def _bytes(bits: int) -> int:
    """Whole bytes, in bits: the kernel counts no others."""
    return bits // 8 * 8


POLICY = declaration.Policy(
    stem=STEM,
    summary="network bandwidth of each class",
    protects="it limits what each class sends and receives",
    decide=decide,
    settings=Settings(),
    timeless=True,
    default_mode=plan.Mode.OFF,
)
