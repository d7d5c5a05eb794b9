"""Claims, their volumes, and what drivers attach."""

from __future__ import annotations

from tests.oracle.messages import Verdict
from tests.oracle.objects import Body, amount, key, labels, name, namespace, selects, term_matches
from tests.oracle.world import World

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
LATE = "WaitForFirstConsumer"


def names(pod: Body) -> list[str]:
    """The claims that a pod mounts."""
    mounted = pod["spec"].get("volumes", [])
    return [volume["persistentVolumeClaim"]["claimName"] for volume in mounted]


def claims(world: World, pod: Body) -> list[Body]:
    """The same, as objects."""
    return [world.claims[namespace(pod), claim_name] for claim_name in names(pod)]


def refusal(world: World, pod: Body) -> str:
    """What keeps a pod from every node before any is looked at."""
    for claim_name in names(pod):
        if (namespace(pod), claim_name) not in world.claims:
            return f'persistentvolumeclaim "{claim_name}" not found'
    for claim in claims(world, pod):
        if not claim["spec"].get("volumeName"):
            kind = world.kinds.get(claim["spec"].get("storageClassName", ""), {})
            if kind.get("volumeBindingMode", "Immediate") != LATE:
                return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def restrictions(world: World, pod: Body, node: Body) -> Verdict:  # noqa: ARG001 - cluster-wide
    """A claim for one pod alone."""
    mine = {
        key(claim)
        for claim in claims(world, pod)
        if "ReadWriteOncePod" in claim["spec"]["accessModes"]
    }
    taken = {key(claim) for neighbour, _ in world.placed() for claim in claims(world, neighbour)}
    if not mine & taken:
        return Verdict([], helpful=True)
    reason = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    return Verdict([f"{reason} already in-use by another pod"], helpful=True)


def attached(world: World, pod: Body) -> set[tuple[str, str]]:
    """Driver and volume of each claim; one to be made, or gone, is its driver's, too."""
    pairs = set()
    for claim in claims(world, pod):
        volume = claim["spec"].get("volumeName")
        if volume not in world.volumes:
            driver = world.kinds[claim["spec"]["storageClassName"]]["provisioner"]
            pairs.add((driver, key(claim)))
        elif csi := world.volumes[volume]["spec"].get("csi"):
            pairs.add((csi["driver"], csi["volumeHandle"]))
    return pairs


def limits(world: World, pod: Body, node: Body) -> Verdict:
    """So many volumes of a driver on a node."""
    there = {pair for neighbour in world.on[name(node)] for pair in attached(world, neighbour)}
    new = attached(world, pod) - there
    for driver, most in world.limits.get(name(node), {}).items():
        come = sum(its_driver == driver for its_driver, _ in new)
        if come and come + sum(its_driver == driver for its_driver, _ in there) > most:
            return Verdict(["node(s) exceed max volume count"], helpful=True)
    return Verdict([], helpful=True)


def reaches(volume: Body, node: Body) -> bool:
    """The volume's own affinity allows the node."""
    terms = volume["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms")
    return terms is None or any(term_matches(term, node) for term in terms)


def size(claim: Body) -> int:
    """Bytes that a claim wants."""
    return amount("storage", claim["spec"]["resources"]["requests"]["storage"])


def candidates(world: World, claim: Body) -> list[Body]:
    """The volumes that a claim may take, the best first."""
    spec = claim["spec"]
    free = [
        volume
        for volume in world.volumes.values()
        if not volume["spec"].get("claimRef")
        and volume.get("status", {}).get("phase", "Available") == "Available"
    ]
    named = [
        volume
        for volume in world.volumes.values()
        if volume["spec"].get("claimRef")
        and (volume["spec"]["claimRef"]["namespace"], volume["spec"]["claimRef"]["name"])
        == (namespace(claim), name(claim))
    ]
    fitting = [
        volume
        for volume in named or free
        if amount("storage", volume["spec"]["capacity"]["storage"]) >= size(claim)
        and volume["spec"].get("storageClassName") == spec.get("storageClassName")
        and set(spec["accessModes"]) <= set(volume["spec"]["accessModes"])
        and (not spec.get("selector") or selects(spec["selector"], labels(volume)))
        and world.promised.get(name(volume), key(claim)) == key(claim)
    ]
    fitting.sort(
        key=lambda volume: (amount("storage", volume["spec"]["capacity"]["storage"]), name(volume))
    )
    return fitting


def made_for(world: World, claim: Body, node: Body) -> bool:
    """The provisioner of its class serves the node."""
    kind = world.kinds[claim["spec"]["storageClassName"]]
    if kind["provisioner"] == "kubernetes.io/no-provisioner":
        return False
    allowed = kind.get("allowedTopologies", [])
    return not allowed or any(
        all(labels(node).get(e["key"]) in e["values"] for e in term["matchLabelExpressions"])
        for term in allowed
    )


def assigned(world: World, pod: Body, node: Body) -> dict[str, str] | None:
    """Claim to volume, empty where it is to be made; None where one finds nothing."""
    waiting = [claim for claim in claims(world, pod) if not claim["spec"].get("volumeName")]
    choice: dict[str, str] = {}
    for claim in sorted(waiting, key=size):
        where = claim["metadata"].get("annotations", {}).get(SELECTED)
        if where and where != name(node):
            return None
        reachable = (
            []
            if where
            else [volume for volume in candidates(world, claim) if reaches(volume, node)]
        )
        left = [name(volume) for volume in reachable if name(volume) not in choice.values()]
        if not left and not made_for(world, claim, node):
            return None
        choice[key(claim)] = left[0] if left else ""
    return choice


def binding(world: World, pod: Body, node: Body) -> Verdict:
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
    return Verdict(reasons, helpful=False)


def zone(world: World, pod: Body, node: Body) -> Verdict:
    """The zone of a volume is the node's; who has none is not asked."""
    mine = labels(node)
    if ZONE not in mine and OLD_ZONE not in mine:
        return Verdict([], helpful=True)
    for claim in claims(world, pod):
        volume = world.volumes.get(claim["spec"].get("volumeName", ""), {"metadata": {}})
        for label, value in labels(volume).items():
            if label not in (ZONE, OLD_ZONE):
                continue
            here = mine.get(label, mine.get(ZONE) if label == OLD_ZONE else None)
            if here not in value.split("__"):
                return Verdict(["node(s) had no available volume zone"], helpful=False)
    return Verdict([], helpful=True)
