"""``koordlet explain plan POD``: which moves would make room for it, and why they are safe."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.cli import cluster_files, output
from koordlet.model import errors

HELP = "which moves would make room for a pod that fits nowhere, or empty a node; nothing is moved"
#: In place of a pod.
_EMPTY = "empty-node"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "pod",
        metavar="NAMESPACE/NAME",
        help="a pod that waits for a node, and what its gang lacks with it; or"
        f" {_EMPTY}: which node is emptied at the least cost; or a size, as in cpu=8,memory=32Gi:"
        " which node gets room for such a pod, beside those that have it",
    )
    cluster_files.add(parser)


def run(args: argparse.Namespace) -> int:
    """Search and print. Exit 1 where there is no plan."""
    from koordlet.scheduler.sim import planning  # noqa: PLC0415 -- numpy: 170 ms of a `--help`

    bodies = cluster_files.read(args)
    pod, key = None, args.pod if "/" in args.pod else f"default/{args.pod}"
    room = _size(args.pod) if "=" in args.pod else {}
    if args.pod != _EMPTY and not room:
        pod = planning.waiting(bodies, key)
        if pod is None:
            raise errors.ConfigError("no such pod waits for a node", culprit=key)
    document = planning.document(cluster_files.scene(args, bodies), pod, room)
    output.show(args.output, document, lines(document))
    return 0 if document["node"] else 1


def _size(text: str) -> dict[str, int]:
    """What a pod asks for, as in cpu=8,memory=32Gi."""
    from koordlet.scheduler.disruption import headroom  # noqa: PLC0415 -- with the scheduler

    pairs = (part.partition("=") for part in text.split(","))
    try:
        return headroom.size({name.strip(): amount.strip() for name, _, amount in pairs})
    except ValueError as error:
        raise errors.ConfigError(str(error), culprit=text) from error


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The plan, and its proof."""
    if not document["node"]:
        yield str(document["why"])
        return
    rows = [
        (
            str(place),
            move["pod"],
            move["from"],
            move["to"],
            str(move["cost"]),
            move["waitsFor"] or "-",
        )
        for place, move in enumerate(document["moves"], 1)
    ]
    yield from output.table(rows, head=("", "POD", "FROM", "TO", "COST", "WAITS FOR"))
    goal = f"for {document['for']}" if document["for"] else "to be emptied"
    gain = f"{document['improvement']} of it freed"
    yield f"node {document['node']} {goal}: {gain}, at a cost of {document['cost']}"
    yield from (f"node {each['node']} for {each['pod']}" for each in document["members"])
    yield "Why it is safe:"
    yield from (f"  {line}" for line in document["proof"])
    if document["room"]:
        yield "Nothing is moved. To have it moved: headroom in a ReschedulingConfiguration"
        return
    yield "Nothing is moved. To move them, room for all first, one after the other:"
    yield f"  koordlet reschedule {document['for'] or 'empty-node'} --wait"
