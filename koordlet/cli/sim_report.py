"""What ``koordlet sim`` prints for people: the summary, who goes where; or one explanation.

Covers: lines of results, explanations, comparisons. Does not cover: options, reading (``sim``),
gangs and quotas (``gangs``, ``quotas``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import gangs, output, quotas

Document = Mapping[str, Any]
#: Names of one group that are spelled out.
_NAMED = 3
_CPU, _MEMORY = "cpuMilli", "memoryBytes"
_WORDS = {_CPU: "cpu", _MEMORY: "memory", "pods": "pods"}


def lines(result: Document, top: int) -> list[str]:
    """The result as a person reads it; ``top``: nodes of an explanation."""
    explained = result.get("explanation")
    if explained is not None:
        return gangs.detail(explained) if "gang" in explained else [*_explained(explained, top)]
    text = [*summary(result["summary"], len(result["preemptions"]))]
    text += _colocated(result["colocated"])
    if result["placements"]:
        text += ["", *_placed(result["placements"])]
    for part in (
        _reserved(result["reservations"]),
        gangs.table(result["gangs"]),
        quotas.table(result["quotas"]),
        [
            f"{each['pod']} preempts on {each['node']}: {', '.join(each['victims'])}"
            for each in result["preemptions"]
        ],
    ):
        text += ["", *part] if part else []
    return text


def summary(cluster: Document, preemptions: int = 0) -> Iterator[str]:
    """How full the cluster is, and why pods wait."""
    yield (
        f"{cluster['placed']} placed, {cluster['pending']} pending, {preemptions} preemptions"
        f" on {_nodes(cluster['nodes'])}"
    )
    for group in cluster["pendingByReason"]:
        yield f"  {len(group['pods'])} pending: {group['message']} ({_some(group['pods'])})"
    for name, value in _figures(cluster):
        yield f"  {name + ':':<26} {value}"


def _colocated(changed: Sequence[Document]) -> Iterator[str]:
    """By profile: the pods that it changed."""
    groups: dict[str, list[str]] = {}
    for pod in changed:
        for profile in pod["profiles"]:
            groups.setdefault(profile, []).append(pod["pod"])
    for profile, pods in sorted(groups.items()):
        yield f"  {len(pods)} changed by ClusterColocationProfile {profile} ({_some(pods)})"


def compared(comparison: Document) -> Iterator[str]:
    """Two simulations side by side, then the pods whose place differs."""
    before, after = (
        dict((*_counts(cluster), *_figures(cluster)))
        for cluster in (comparison["before"], comparison["after"])
    )
    rows = [(name, before.get(name, "-"), value) for name, value in after.items()]
    yield from output.table(rows, head=("", "BEFORE", "AFTER"))
    groups: dict[str, list[str]] = {}
    for move in comparison["pods"]:
        kind = (
            "now pending, or gone" if move["after"] is None
            else "placed now" if move["before"] is None
            else "on another node"
        )  # fmt: skip
        groups.setdefault(kind, []).append(move["pod"])
    yield ""
    for kind, pods in groups.items():
        yield f"{len(pods)} {kind}: {_some(pods)}"
    if not groups:
        yield "no pod is elsewhere"


def _counts(cluster: Document) -> Iterator[tuple[str, str]]:
    yield "nodes", _nodes(cluster["nodes"])
    yield "placed", str(cluster["placed"])
    yield "pending", str(cluster["pending"])


def _figures(cluster: Document) -> Iterator[tuple[str, str]]:
    for key, use in cluster["utilisation"].items():
        percent = "none" if use["percent"] is None else f"{use['percent']} %"
        of = f"{_amount(key, use['requested'])} of {_amount(key, use['allocatable'])}"
        yield f"{_WORDS[key]} requested", f"{percent} ({of})"
    scattered = cluster["scattered"]
    if scattered["percent"] is not None:
        pod = ", ".join(
            f"{_WORDS[key]} {_amount(key, much)}" for key, much in scattered["ofPod"].items()
        )
        yield "scattered room", f"{scattered['percent']} % of the room for pods of {pod}"
    for pod in cluster["largestPod"]:
        room = ", ".join(f"{_WORDS[key]} {_amount(key, pod[key])}" for key in (_CPU, _MEMORY))
        yield f"largest pod by {_WORDS[pod['by']]}", f"{room} ({pod['node']})"


def _nodes(nodes: Document) -> str:
    closed = nodes["all"] - nodes["open"]
    return f"{nodes['all']} nodes" + (f", {closed} of them closed" if closed else "")


def _amount(key: str, value: int) -> str:
    if key == _CPU:
        return f"{value / 1000:.15g}"
    return f"{round(value / 2**30, 2):.15g} GiB" if key == _MEMORY else str(value)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _placed(placements: Sequence[Document]) -> list[str]:
    """Who goes where; with the devices where anybody gets some."""
    head = ("POD", "NODE", "RESERVATION", "EQUALLY GOOD", "DEVICES")
    rows = [
        (
            placement["pod"],
            placement["node"],
            placement["reservation"] or "",
            f"{len(ties)} nodes" if len(ties := placement.get("ties") or []) > 1 else "",
            "; ".join(filter(None, _devices(placement))),
        )
        for placement in placements
    ]
    width = 5 if any({"devices", "claims"} & placement.keys() for placement in placements) else 4
    return output.table([row[:width] for row in rows], head=head[:width])


def _devices(placement: Document) -> Iterator[str]:
    """Devices by minor, then those of claims by their names."""
    from koordlet.scheduler.allocation import devices  # noqa: PLC0415 -- loaded by now

    yield devices.brief(placement.get("devices", {}))
    for claim, names in placement.get("claims", {}).items():
        yield f"{claim}: {', '.join(names)}"


def _reserved(reservations: Sequence[Document]) -> list[str]:
    if not reservations:
        return []
    rows = [
        (
            reservation["name"],
            reservation["phase"],
            reservation["node"] or "",
            _amounts(reservation["allocatable"]),
            _amounts(reservation["allocated"]),
            ", ".join(each["name"] for each in reservation["currentOwners"]),
        )
        for reservation in reservations
    ]
    head = ("RESERVATION", "PHASE", "NODE", "HOLDS", "ALLOCATED", "OWNERS")
    problems = [
        f"{reservation['name']}: {each['message']}"
        for reservation in reservations
        for each in reservation["conditions"]
        if each.get("message")
    ]
    return [*output.table(rows, head=head), *problems]


def _amounts(amounts: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in amounts.items())


def _explained(explanation: Document, top: int) -> Iterator[str]:
    """The best nodes with their scores, then refusals by reason."""
    nodes = explanation["nodes"]
    fits = {name: node for name, node in nodes.items() if node["total"] is not None}
    yield explanation["pod"]
    for plugin, reason in explanation.get("refused", {}).items():
        yield f"  refused by {plugin}: {reason}"
    if nodes:
        yield f"  {len(fits)} of {len(nodes)} nodes fit"
    best = sorted(fits, key=lambda name: -fits[name]["total"])
    for name in best[:top]:
        yield f"  {name}: {fits[name]['total']}"
        for plugin, outlook in fits[name].get("gets", {}).items():
            yield f"    gets of {plugin}: {outlook}"
        for plugin, score in fits[name]["scores"].items():
            yield f"    {plugin}: {score['score']} * {score['weight']}"
    if len(best) > top:
        yield f"  and {len(best) - top} more that fit: --top {len(best)}"
    refusals: dict[str, list[str]] = {}
    for name, node in nodes.items():
        if name not in fits:
            why = (
                f"{p}: {', '.join(reasons)}" for p, reasons in node["filters"].items() if reasons
            )
            refusals.setdefault("; ".join(why), []).append(name)
    for reason, names in sorted(refusals.items(), key=lambda refusal: -len(refusal[1])):
        yield f"  ✗ {len(names)} refused by {reason} ({_some(names)})"
        yield from (f"      {names[0]}: {line}" for line in nodes[names[0]].get("details", ()))
