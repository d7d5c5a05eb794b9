"""``koordlet sim``: where the scheduler would put these pods, and why not; changes nothing."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koordlet.cli import descheduling, options, output, quotas, scheduler, sim_report
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
koordlet sim all.json --add-nodes 3 --scale deployment/shop/web=40    what if, beside what is
koordlet sim all.json --without node-7                 what if a node were gone
koordlet sim all.json -o json > old.json; koordlet sim new.json --compare old.json
koordlet sim all.json -o svg > utilisation.svg
koordlet sim all.json --profiles profiles.yaml         what if colocation profiles were in force
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
    "--explain NAME": "one pod, its best nodes first; or one gang, and what would let it run",
    "--top N": "nodes of an explanation (default: 10); with -o json it has all of them",
    "--add-nodes N": "what if: N nodes more, as --like, else as most nodes are",
    "--like NODE": "the node that --add-nodes copies",
    "--without NODE": "what if: without a node, whose pods are placed anew; may be repeated",
    "--scale WORKLOAD=N": "what if: N pods of deployment/[NAMESPACE/]NAME or statefulset/…; may be"
    " repeated",
    "--compare FILE": "beside an earlier result (-o json): both summaries, and who is elsewhere",
    "--quota FILE": "what if: ElasticQuotas in place of those of the same name, and who moves",
    "--profiles FILE": "what if: ClusterColocationProfiles changed the pending pods",
    "--deschedule FILE": "what if: one round of a descheduler with this configuration, of"
    " Koordinator or of Kubernetes' descheduler; with --explain every check of one pod",
    "--now TIME": "the time at which reservations are judged, as 2026-01-31T12:00:00Z or in Unix"
    " seconds (default: the newest time in the input)",
}
#: Options of which a round of a descheduler knows nothing.
_PLACING = ("profiles", "quota", "compare", "add_nodes", "without", "scale")
#: Options of which a change of quotas knows nothing.
_BESIDE_QUOTA = ("compare", "add_nodes", "without", "scale", "explain")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", metavar="FILE", nargs="*", help="objects as kubectl prints them")
    count, explain, now = {"type": options.count}, {"default": ""}, {"type": _moment}
    several: dict[str, Any] = {"action": "append", "default": []}
    options.declare(
        parser,
        _OPTIONS,
        nodes=count,
        pods=count,
        add_nodes={"type": options.count, "default": 0},
        top={"type": options.count, "default": 10},
        without=several,
        scale={**several, "type": _scale},
        explain=explain,
        now=now,
    )
    options.ignoring(parser)
    options.output(parser, ("table", "json", "svg"))


def _scale(text: str) -> tuple[str, str, int]:
    """Namespace, name and replicas."""
    path, _, number = text.partition("=")
    kind, _, name = path.partition("/")
    namespace, _, name = name.rpartition("/")
    if kind not in ("deployment", "statefulset") or not name or "/" in namespace:
        raise argparse.ArgumentTypeError(f"deployment/[NAMESPACE/]NAME=N, not {text!r}")
    return namespace or "default", name, options.count(number)


def _moment(text: str) -> float:
    try:
        at = float(text) if text.replace(".", "", 1).isdigit() else moment.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if at > moment.LAST:
        raise argparse.ArgumentTypeError(f"after the year 9999: {text!r}")
    return at


def run(args: argparse.Namespace) -> int:
    """Read, try, print."""
    _check_together(args)
    complaints: list[str] = []
    bodies = _input(args, complaints)
    if args.deschedule:
        return _deschedule(args, bodies, complaints)
    # numpy and the scheduler: 180 ms that `--help` and what imports this module do without.
    from koordlet.kubeapi import kinds, manifests  # noqa: PLC0415 -- YAML, 8 ms of the same
    from koordlet.scheduler.cluster import inventory  # noqa: PLC0415
    from koordlet.scheduler.sim import colocation, picture, simulation, what_if  # noqa: PLC0415

    configured = scheduler.read_configuration(args.config)
    output.warn(configured.warnings if configured is not None else ())
    deciding = configured.deciding if configured is not None else ()
    now = args.now if args.now is not None else manifests.newest(bodies)
    now = time.time() if now is None else now
    explain = args.explain if "/" in args.explain or not args.explain else f"default/{args.explain}"
    # Ties of generated clusters are nearly all nodes, for every pod: only where they are asked for.
    ties = args.scores or (args.nodes, args.pods, args.workload) == (None, None, None)

    profiles = manifests.load(args.profiles, complaints) if args.profiles else []
    kind = kinds.CLUSTER_COLOCATION_PROFILES.name
    if args.profiles and kind not in {body.get("kind") for body in profiles}:
        raise errors.ConfigError(f"there is no {kind} in it", culprit=args.profiles)

    def simulate(
        bodies: Sequence[Mapping[str, Any]],
    ) -> tuple[inventory.Cluster, simulation.Result]:
        colocated = colocation.SimulatedColocation(bodies, profiles)
        keys = args.ignores_keys
        loaded = inventory.load(bodies, deciding, ignores_keys=keys, admit=colocated)
        loaded.warnings.extend(colocated.warnings)
        wanted = {"scores": args.scores, "ties": ties, "explain": explain, "now": now}
        result = simulation.Simulation(loaded, configured, **wanted).run(_progress)
        result.colocated.extend(colocated.changed)
        return loaded, result

    if args.quota:
        _, before = simulate(bodies)
        loaded, result = simulate(what_if.replaced(bodies, manifests.load(args.quota, complaints)))
        output.warn((*complaints, *loaded.warnings))
        moved = what_if.document(before, result)
        return output.show(args.output, moved, quotas.moved(moved))
    changed = what_if_bodies(args, bodies)
    against = None
    if args.compare:
        against = _earlier(args.compare)
    elif changed is not bodies:
        against = simulate(bodies)[1].document()
    loaded, result = simulate(changed)
    if explain and result.explanation is None:
        raise errors.ConfigError("neither a pod that was tried nor a gang", culprit=explain)
    output.warn((*complaints, *loaded.warnings))
    document: dict[str, Any] = result.document()
    text = sim_report.lines(document, args.top)
    if against is not None:
        document["comparison"] = what_if.comparison(against, document)
        text = list(sim_report.compared(document["comparison"]))
    return output.show(args.output, document, text, lambda: f"{picture.svg(loaded.columns)}\n")


def _check_together(args: argparse.Namespace) -> None:
    """Refuse what would be without effect beside the other options."""
    if args.like and not args.add_nodes:
        raise errors.UsageError(
            "it is the node that --add-nodes copies", culprit="--like", fix="add --add-nodes N"
        )
    for key in _BESIDE_QUOTA if args.quota else ():
        if getattr(args, key):
            raise errors.UsageError(
                "--quota shows who moves by changed quotas alone",
                culprit=f"--{key.replace('_', '-')}",
                fix="simulate one without the other",
            )


def _deschedule(
    args: argparse.Namespace, bodies: Sequence[Mapping[str, Any]], complaints: Sequence[str]
) -> int:
    """A round of a descheduler in place of a placement."""
    for key in _PLACING:
        if getattr(args, key):
            raise errors.ConfigError(
                "it says where pods would be placed, and --deschedule which would leave",
                culprit=f"--{key.replace('_', '-')}",
                fix="simulate one without the other",
            )
    form = "table" if args.output == "svg" else args.output
    settings = descheduling.read(args.deschedule)
    output.warn(complaints)
    return descheduling.show(form, bodies, settings, now=args.now, explain=args.explain)


def what_if_bodies(
    args: argparse.Namespace, bodies: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """The objects as the command line changes them; the same list where it changes nothing."""
    from koordlet.scheduler.sim import what_if  # noqa: PLC0415 -- see above

    for name in args.without:
        bodies = what_if.without(bodies, name)
    if args.add_nodes:
        bodies = what_if.with_nodes(bodies, args.add_nodes, args.like or "")
    for namespace, name, replicas in args.scale:
        bodies = what_if.scaled(bodies, namespace, name, replicas)
    return bodies


def _earlier(path: str) -> dict[str, Any]:
    """The document of an earlier simulation."""
    from koordlet.scheduler.sim import what_if  # noqa: PLC0415 -- see above

    try:
        document: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        # What can be compared with itself can be compared.
        list(sim_report.compared(what_if.comparison(document, document)))
    except (OSError, ValueError) as error:
        raise errors.ConfigError(str(error), culprit=path, fix=_MADE_BY) from None
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise errors.ConfigError("no result of a simulation", culprit=path, fix=_MADE_BY) from None
    return document


_MADE_BY = "make it with `koordlet sim … -o json`"


def _input(args: argparse.Namespace, complaints: list[str]) -> list[Mapping[str, Any]]:
    """The objects of the files, and what is generated."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- see above
    from koordlet.scheduler.sim import shapes  # noqa: PLC0415 -- see above

    counts = args.nodes, args.pods
    generated = counts != (None, None) or args.workload is not None
    if not args.files and not generated:
        raise errors.ConfigError(
            "nothing to simulate", culprit="sim", fix="name a FILE, or --nodes and --pods"
        )
    bodies: list[Mapping[str, Any]] = []
    for path in args.files:
        bodies += manifests.load(path, complaints)
    if generated:
        if counts == (None, None) and not args.files:
            counts = _NODES, _PODS
        name = args.workload or "SchedulingBasic"
        bodies += shapes.generate(name, counts[0] or 0, counts[1] or 0)
    return bodies


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} pods", end="\n" if done >= total else "", file=sys.stderr)
