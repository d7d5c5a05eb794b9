"""``koordlet reserve``: keep room on a node for what is yet to come."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from koordlet.cli import options, output, reservations
from koordlet.kubeapi import objects
from koordlet.model import errors, moment, quantity

EXAMPLES = """\
koordlet reserve web-room -f reservation.yaml                     as the API has it
koordlet reserve web-room --cpus 4 --memory 8Gi --owner app=web   for pods with that label
koordlet reserve db --node n1 --cpus 4 --memory 16Gi --cache-ways 4 --owner unit=postgres.service
koordlet reserve job --node n1 --cpus 2 --owner pid=4711 --ttl 2h
"""
#: How a reservation says which unit or cgroup of its node it is for.
MATCH = "koordlet.io/match"
#: The peer's annotation of cache and bandwidth, with our number of ways for nobody else.
CACHE_WAYS = "node.koordinator.sh/resctrl"
#: Controllers whose hierarchy says where a process is; the empty name is v2.
_HIERARCHIES = ("cpuset", "cpu", "", "name=systemd")
_NATIVE = ("unit", "cgroup", "pid")
_OPTIONS = {
    "-f, --file FILE": "a Reservation, YAML or JSON",
    "--node NODE": "on this node",
    "--cpus N": "so many CPUs; whole ones are held by number",
    "--memory Q": "so much memory",
    "--cache-ways N": "so many ways of the L3 cache",
    "--owner OWNER": "who may use it: KEY=VALUE (a label of pods), unit=UNIT, cgroup=PATH or"
    " pid=PID; several: any of them",
    "--ttl D": "how long; 0: for ever",
    "--several": "for several owners, not only for the first",
    "--token TEXT": "repeating it with the same token is harmless",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", help="of the reservation")
    options.declare(
        parser,
        _OPTIONS,
        node={"default": ""},
        cache_ways={"type": int},
        owner={"action": "append", "default": []},
        ttl={"default": "24h"},
        token={"default": ""},
    )
    options.cgroup_root(parser)
    reservations.add(parser)


def run(args: argparse.Namespace) -> int:
    """Create it, and print what it is."""
    body = _from_file(args) if args.file else _from_options(args)
    reservation = reservations.Reach(args).create(body, args.token)
    return output.show(args.output, {"reservation": reservation}, reservations.table([reservation]))


def _from_file(args: argparse.Namespace) -> dict[str, Any]:
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML, 8 ms, with --file alone

    given = [args.node, args.cpus, args.memory, args.cache_ways, *args.owner]
    if any(option not in {None, ""} for option in given):
        raise errors.UsageError("-f has it all", fix="leave the other options out")
    bodies = [
        manifest for manifest in manifests.load(args.file) if manifest.get("kind") == "Reservation"
    ]
    if len(bodies) != 1:
        raise errors.ConfigError(
            f"holds {len(bodies)} Reservations", culprit=args.file, fix="give one"
        )
    body = dict(bodies[0])
    name = objects.text(body, "name")
    if name not in {"", args.name}:
        raise errors.ConfigError(
            f"its name is {name!r}, not {args.name!r}", culprit=args.file, fix="name it alike"
        )
    body["metadata"] = {**objects.metadata(body), "name": args.name}
    return body


def _from_options(args: argparse.Namespace) -> dict[str, Any]:
    amounts = {
        name: str(spelled)
        for name, spelled in (("cpu", args.cpus), ("memory", args.memory))
        if spelled is not None
    }
    _check(args, amounts)
    spec: dict[str, Any] = {
        "containers": [{"name": "reserved", "resources": {"requests": amounts}}],
        "schedulerName": "koordlet-scheduler",
    }
    if args.node:
        spec["nodeName"] = args.node
    owners, match = _owners(args.owner, (args.cgroup_root or "").strip("/"))
    annotations = {}
    if match:
        annotations[MATCH] = json.dumps(match, separators=(",", ":"))
        # It is there whatever the node's condition is: only room counts.
        spec["tolerations"] = [{"operator": "Exists"}]
    if args.cache_ways is not None:
        wish = {"llc": {"ways": args.cache_ways}}
        annotations[CACHE_WAYS] = json.dumps(wish, separators=(",", ":"))
    return {
        "metadata": {"name": args.name, "annotations": annotations},
        "spec": {
            "template": {"spec": spec},
            "owners": owners,
            "allocateOnce": not args.several and not match,
            "ttl": args.ttl,
        },
    }


def _check(args: argparse.Namespace, amounts: dict[str, str]) -> None:
    if not amounts:
        raise errors.UsageError("nothing to reserve", fix="give --cpus, --memory or -f FILE")
    if not args.owner:
        raise errors.UsageError("for whom?", culprit="--owner", fix="give KEY=VALUE or unit=UNIT")
    if args.cache_ways is not None and args.cache_ways < 1:
        raise errors.UsageError("at least one", culprit="--cache-ways")
    for name, spelled in amounts.items():
        option = "--cpus" if name == "cpu" else f"--{name}"
        try:
            value = quantity.milli(spelled)
        except ValueError as error:
            raise errors.UsageError(str(error), culprit=option) from error
        if value <= 0:
            raise errors.UsageError("must be more than nothing", culprit=option)
    try:
        moment.duration(args.ttl)
    except ValueError as error:
        raise errors.UsageError(str(error), culprit="--ttl") from error


def _owners(given: list[str], top: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Owner entries, and the unit or cgroup that it is for instead of pods."""
    owners: list[dict[str, Any]] = []
    match: dict[str, str] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise errors.UsageError(f"not KEY=VALUE: {pair!r}", culprit="--owner")
        if key in _NATIVE:
            if match:
                raise errors.UsageError("one unit, cgroup or pid only", culprit="--owner")
            match = {"cgroup": _cgroup_of(value, top)} if key == "pid" else {key: value}
            [(kind, what)] = match.items()
            # No pod has this label: it is the node's agent that gives the room away.
            owners.append({"labelSelector": {"matchLabels": {f"koordlet.io/{kind}": _short(what)}}})
        else:
            owners.append({"labelSelector": {"matchLabels": {key: value}}})
    return owners, match


def _short(text: str) -> str:
    """Shorten a text to a valid label value of at most 63 characters."""
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text)
    return kept.strip("-_.")[-63:].strip("-_.") or "root"


def _cgroup_of(pid: str, top: str) -> str:
    """The cgroup of a process, below the agent's root: that is what can be given room.

    On v1 a process has one in each hierarchy (cgroups(7)), and may be in the root of some: that of
    its CPU set counts first, then that of its CPU time, then what a service manager tracks it by.
    """
    try:
        lines = Path(f"/proc/{int(pid)}/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise errors.UsageError(
            f"no process {pid!r} here", culprit="--owner", fix="name its cgroup: cgroup=PATH"
        ) from error
    groups = {
        controller: path
        for _, controllers, path in (line.split(":", 2) for line in lines)
        for controller in controllers.split(",")
    }
    inside = [groups[hierarchy] for hierarchy in _HIERARCHIES if groups.get(hierarchy, "/") != "/"]
    if not inside:
        raise errors.UsageError(
            f"process {pid} is in the root cgroup", culprit="--owner", fix="give it one of its own"
        )
    path = inside[0].lstrip("/")
    if top and not path.startswith(f"{top}/"):
        raise errors.UsageError(
            f"process {pid} is in {path}, which is not below {top}", culprit="--cgroup-root"
        )
    return path.removeprefix(f"{top}/") if top else path
