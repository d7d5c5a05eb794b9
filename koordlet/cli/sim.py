"""``koordlet sim``: where the scheduler would put these pods, and why not; changes nothing."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from koordlet.cli import descheduling, gangs, options, output, quotas, scheduler
from koordlet.model import errors, moment

if TYPE_CHECKING:
    from koordlet.scheduler.sim import simulation

EXAMPLES = """\
kubectl get nodes,pods -A -o json > all.json; koordlet sim all.json
koordlet sim all.json --explain default/web          every filter's verdict, every score
koordlet sim all.json --explain default/train        a gang: its members, what would let it run
koordlet sim --nodes 5000 --pods 20000 --workload SchedulingBasic
koordlet sim all.json --config scheduler.yaml -o json --scores
koordlet sim --workload TopologySpreading             500 nodes, 1000 pods
koordlet sim --workload SchedulingGangs               jobs of 1 to 64 workers
koordlet sim all.json --quota changed.yaml             what if a quota were changed
koordlet sim all.json -o svg > utilisation.svg
koordlet sim all.json --deschedule policy.yaml         what a descheduler would move, and why not
"""
#: What is generated where a workload is named and no number.
_NODES, _PODS = 500, 1000
_OPTIONS = {
    "--nodes N": "generate N nodes",
    "--pods N": "generate N pending pods",
    "--workload NAME": "shape of what is generated, named as upstream's benchmark"
    " (default: SchedulingBasic)",
    "--config FILE": "a KubeSchedulerConfiguration",
    "--scores": "scores of every feasible node",
    "--explain NAME": "one pod, node by node; or one gang, and what would let it run",
    "--quota FILE": "what if: ElasticQuotas in place of those of the same name, and who moves",
    "--deschedule FILE": "what if: one round of a descheduler with this configuration, of"
    " Koordinator or of Kubernetes' descheduler; with --explain every check of one pod",
    "--now TIME": "the time at which reservations are judged, as 2026-01-31T12:00:00Z or in Unix"
    " seconds (default: the newest time in the input)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", metavar="FILE", nargs="*", help="objects as kubectl prints them")
    count, explain, now = {"type": _count}, {"default": ""}, {"type": _moment}
    options.declare(parser, _OPTIONS, nodes=count, pods=count, explain=explain, now=now)
    options.ignoring(parser)
    options.output(parser, ("table", "json", "svg"))


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"from 0 to 1000000, not {text!r}")
    return value


def _moment(text: str) -> float:
    try:
        return float(text) if text.replace(".", "", 1).isdigit() else moment.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Read, try, print."""
    # numpy and the scheduler: 180 ms that `--help` and what imports this module do without.
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML, 8 ms of the same
    from koordlet.scheduler.cluster import inventory  # noqa: PLC0415
    from koordlet.scheduler.sim import picture, shapes, simulation, what_if  # noqa: PLC0415

    generated = args.nodes is not None or args.pods is not None or args.workload is not None
    if not args.files and not generated:
        raise errors.ConfigError(
            "nothing to simulate", culprit="sim", fix="name a FILE, or --nodes and --pods"
        )
    complaints: list[str] = []
    bodies = [body for path in args.files for body in manifests.load(path, complaints)]
    if generated:
        name = args.workload or "SchedulingBasic"
        counts = args.nodes, args.pods
        if counts == (None, None) and not args.files:
            counts = _NODES, _PODS
        bodies += shapes.generate(name, counts[0] or 0, counts[1] or 0)
    if args.deschedule:
        form = "table" if args.output == "svg" else args.output
        settings = descheduling.read(args.deschedule)
        output.warn(complaints)
        return descheduling.show(form, bodies, settings, now=args.now, explain=args.explain)
    configured = scheduler.read_configuration(args.config)
    output.warn(configured.warnings if configured is not None else ())
    deciding = configured.deciding if configured is not None else ()
    now = args.now if args.now is not None else manifests.newest(bodies)
    now = time.time() if now is None else now
    explain = args.explain if "/" in args.explain or not args.explain else f"default/{args.explain}"
    # Ties of generated clusters are nearly all nodes, for every pod: only where they are asked for.
    ties = args.scores or not generated

    def simulate(
        bodies: Sequence[Mapping[str, Any]],
    ) -> tuple[inventory.Cluster, simulation.Result]:
        loaded = inventory.load(bodies, deciding, ignores_keys=args.ignores_keys)
        wanted = {"scores": args.scores, "ties": ties, "explain": explain, "now": now}
        return loaded, simulation.Simulation(loaded, configured, **wanted).run(_progress)

    if args.quota:
        _, before = simulate(bodies)
        changed = what_if.replaced(bodies, manifests.load(args.quota, complaints))
        loaded, result = simulate(changed)
        output.warn((*complaints, *loaded.warnings))
        document = what_if.document(before, result)
        return output.show(args.output, document, quotas.moved(document))
    loaded, result = simulate(bodies)
    if explain and result.explanation is None:
        raise errors.ConfigError("neither a pod that was tried nor a gang", culprit=explain)
    output.warn((*complaints, *loaded.warnings))
    document, text = result.document(), lines(result)
    return output.show(args.output, document, text, lambda: f"{picture.svg(loaded.columns)}\n")


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} pods", end="\n" if done >= total else "", file=sys.stderr)


def lines(result: simulation.Result) -> list[str]:
    """The result as a person reads it."""
    if result.explanation is not None and "gang" in result.explanation:
        return gangs.detail(result.explanation)
    if result.explanation is not None:
        return list(_explained(result.explanation))
    text: list[str] = []
    if result.placements:
        text += _placed(result.placements)
    text += _reserved(result.reservations)
    text += gangs.table(result.gangs)
    text += quotas.table(result.quotas)
    for preemption in result.preemptions:
        victims = ", ".join(preemption["victims"])
        text.append(f"{preemption['pod']} preempts on {preemption['node']}: {victims}")
    text += (f"{waiting['pod']} stays pending: {waiting['message']}" for waiting in result.pending)
    text.append(
        f"{len(result.placements)} placed, {len(result.pending)} pending,"
        f" {len(result.preemptions)} preemptions"
    )
    return text


def _placed(placements: list[dict[str, Any]]) -> list[str]:
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


def _devices(placement: Mapping[str, Any]) -> Iterator[str]:
    """Devices by minor, then those of claims by their names."""
    from koordlet.scheduler.allocation import devices  # noqa: PLC0415 -- loaded by now

    yield devices.brief(placement.get("devices", {}))
    for claim, names in placement.get("claims", {}).items():
        yield f"{claim}: {', '.join(names)}"


def _reserved(reservations: list[dict[str, Any]]) -> list[str]:
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


def _amounts(amounts: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in amounts.items())


def _explained(explanation: dict[str, Any]) -> list[str]:
    text = [explanation["pod"]]
    for plugin, reason in explanation.get("refused", {}).items():
        text.append(f"  refused by {plugin}: {reason}")
    for name, node in explanation["nodes"].items():
        total = "refused" if node["total"] is None else str(node["total"])
        text.append(f"  {name}: {total}")
        for plugin, reasons in node["filters"].items():
            if reasons:
                text.append(f"    ✗ {plugin}: {', '.join(reasons)}")
        text += (f"      {line}" for line in node.get("details", ()))
        for plugin, outlook in node.get("gets", {}).items():
            text.append(f"    gets of {plugin}: {outlook}")
        for plugin, score in node["scores"].items():
            text.append(f"    {plugin}: {score['score']} * {score['weight']}")
    return text
