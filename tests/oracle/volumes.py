"""Claims, their volumes, and what drivers attach."""

from __future__ import annotations

from typing import NamedTuple

from tests.oracle.objects import Body, amount, key, labels, name, namespace, selects, term_matches
from tests.oracle.world import World

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
LATE = "WaitForFirstConsumer"


class Found(NamedTuple):
    """Reasons of one rule, and whether preemption could change them."""

    reasons: list[str]
    helpful: bool


def names(pod: Body) -> list[str]:
    """The claims that a pod mounts."""
    several = pod["spec"].get("volumes", [])
    return [one["persistentVolumeClaim"]["claimName"] for one in several]


def claims(world: World, pod: Body) -> list[Body]:
    """The same, as objects."""
    return [world.claims[namespace(pod), one] for one in names(pod)]


def refusal(world: World, pod: Body) -> str:
    """What keeps a pod from every node before any is looked at."""
    for one in names(pod):
        claim = world.claims.get((namespace(pod), one))
        if claim is None:
            return f'persistentvolumeclaim "{one}" not found'
        if not claim["spec"].get("volumeName"):
            kind = world.kinds.get(claim["spec"].get("storageClassName", ""), {})
            if kind.get("volumeBindingMode", "Immediate") != LATE:
                return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def restrictions(world: World, pod: Body, node: Body) -> Found:  # noqa: ARG001 - cluster-wide
    """A claim for one pod alone."""
    mine = {
        key(one) for one in claims(world, pod) if "ReadWriteOncePod" in one["spec"]["accessModes"]
    }
    taken = {key(one) for other, _ in world.placed() for one in claims(world, other)}
    if not mine & taken:
        return Found([], helpful=True)
    reason = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    return Found([f"{reason} already in-use by another pod"], helpful=True)


def attached(world: World, pod: Body) -> set[tuple[str, str]]:
    """Driver and volume of each claim; one that is yet to be made is its driver's, too."""
    found = set()
    for claim in claims(world, pod):
        volume = claim["spec"].get("volumeName")
        if not volume:
            made = world.kinds[claim["spec"]["storageClassName"]]["provisioner"]
            found.add((made, key(claim)))
        elif csi := world.volumes.get(volume, {}).get("spec", {}).get("csi"):
            found.add((csi["driver"], csi["volumeHandle"]))
    return found


def limits(world: World, pod: Body, node: Body) -> Found:
    """So many volumes of a driver on a node."""
    there = {one for other in world.on[name(node)] for one in attached(world, other)}
    new = attached(world, pod) - there
    for driver, most in world.limits.get(name(node), {}).items():
        come = sum(one == driver for one, _ in new)
        if come and come + sum(one == driver for one, _ in there) > most:
            return Found(["node(s) exceed max volume count"], helpful=True)
    return Found([], helpful=True)


def reaches(volume: Body, node: Body) -> bool:
    """The volume's own affinity allows the node."""
    terms = volume["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms")
    return terms is None or any(term_matches(one, node) for one in terms)


def size(claim: Body) -> int:
    """Bytes that a claim wants."""
    return amount("storage", claim["spec"]["resources"]["requests"]["storage"])


def candidates(world: World, claim: Body) -> list[Body]:
    """The volumes that a claim may take, the best first."""
    spec = claim["spec"]
    free = [
        one
        for one in world.volumes.values()
        if not one["spec"].get("claimRef")
        and one.get("status", {}).get("phase", "Available") == "Available"
    ]
    named = [
        one
        for one in world.volumes.values()
        if one["spec"].get("claimRef")
        and (one["spec"]["claimRef"]["namespace"], one["spec"]["claimRef"]["name"])
        == (namespace(claim), name(claim))
    ]
    fitting = [
        one
        for one in named or free
        if amount("storage", one["spec"]["capacity"]["storage"]) >= size(claim)
        and one["spec"].get("storageClassName") == spec.get("storageClassName")
        and set(spec["accessModes"]) <= set(one["spec"]["accessModes"])
        and (not spec.get("selector") or selects(spec["selector"], labels(one)))
        and world.promised.get(name(one), key(claim)) == key(claim)
    ]
    fitting.sort(key=lambda one: (amount("storage", one["spec"]["capacity"]["storage"]), name(one)))
    return fitting


def made_for(world: World, claim: Body, node: Body) -> bool:
    """The provisioner of its class serves the node."""
    kind = world.kinds[claim["spec"]["storageClassName"]]
    if kind["provisioner"] == "kubernetes.io/no-provisioner":
        return False
    allowed = kind.get("allowedTopologies", [])
    return not allowed or any(
        all(labels(node).get(e["key"]) in e["values"] for e in one["matchLabelExpressions"])
        for one in allowed
    )


def assigned(world: World, pod: Body, node: Body) -> dict[str, str] | None:
    """Claim to volume, empty where it is to be made; None where one finds nothing."""
    waiting = [one for one in claims(world, pod) if not one["spec"].get("volumeName")]
    found: dict[str, str] = {}
    for claim in sorted(waiting, key=size):
        where = claim["metadata"].get("annotations", {}).get(SELECTED)
        if where and where != name(node):
            return None
        several = [] if where else [one for one in candidates(world, claim) if reaches(one, node)]
        left = [name(one) for one in several if name(one) not in found.values()]
        if not left and not made_for(world, claim, node):
            return None
        found[key(claim)] = left[0] if left else ""
    return found


def binding(world: World, pod: Body, node: Body) -> Found:
    """Claims have volumes that the node reaches, or get them there."""
    reasons = []
    for claim in claims(world, pod):
        volume = claim["spec"].get("volumeName")
        if volume and volume not in world.volumes:
            gone = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            reasons.append(gone)
            break
        if volume and not reaches(world.volumes[volume], node):
            reasons.append("node(s) didn't match PersistentVolume's node affinity")
            break
    if assigned(world, pod, node) is None:
        reasons.append("node(s) didn't find available persistent volumes to bind")
    return Found(reasons, helpful=False)


def zone(world: World, pod: Body, node: Body) -> Found:
    """The zone of a volume is the node's; who has none is not asked."""
    mine = labels(node)
    if ZONE not in mine and OLD_ZONE not in mine:
        return Found([], helpful=True)
    for claim in claims(world, pod):
        volume = world.volumes.get(claim["spec"].get("volumeName", ""), {"metadata": {}})
        for label, value in labels(volume).items():
            if label not in (ZONE, OLD_ZONE):
                continue
            here = mine.get(label, mine.get(ZONE) if label == OLD_ZONE else None)
            if here not in value.split("__"):
                return Found(["node(s) had no available volume zone"], helpful=False)
    return Found([], helpful=True)
