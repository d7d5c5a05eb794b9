"""``koordlet explain cpu N``: who has a CPU, why, since when, and who else may run there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from koordlet.cli import node_source, output
from koordlet.model import cpuset, errors
from koordlet.report import documents

HELP = "who has this CPU, why, since when, and who else may run there"

_MEANS = {
    "reserved": "it belongs to the machine: no workload that we place runs there",
    "system": "it belongs to system work: no other workload that we place runs there",
    "LSE": "it is this workload's alone",
    "LSR": "it is this workload's; best-effort work may use it while it idles",
    "LS": "it is in the shared pool",
    "BE": "it is in the best-effort pool alone",
    "free": "nobody has claimed it",
    "outside": "no workload can have it: it is outside of the root of the cgroup tree",
    "offline": "it is offline",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("cpu", metavar="N", type=int, help="number of the CPU")
    node_source.add(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    every = documents.rows(node_source.cpus(args), "cpus")
    chosen = next((each for each in every if each.get("cpu") == args.cpu), None)
    if chosen is None:
        numbers = [each.get("cpu") for each in every]
        present = cpuset.CPUSet.of(number for number in numbers if isinstance(number, int))
        raise errors.UsageError(
            "this machine has no such CPU", culprit=f"CPU {args.cpu}", fix=f"it has {present}"
        )
    return output.show(args.output, chosen, lines(chosen, every))


def lines(document: documents.Document, every: list[documents.Document]) -> Iterator[str]:
    """Format the document for people."""
    owner = str(document.get("owner"))
    yield f"CPU {document.get('cpu')}: {owner}, {_MEANS.get(owner, 'it is held')}"
    if document.get("holder"):
        since = f" since {output.moment(document['since'])}" if document.get("since") else ""
        yield f"  held by  {document['holder']}{since}"
        yield f"  because  {document.get('reason')} ({document.get('policy')})"
    if document.get("kubelet"):
        yield "           the kubelet's static policy decided it: its files are not written"
    pools = [
        f"{pool.get('kind')} pool of node {_known(pool.get('node'))} ({pool.get('cpus')})"
        for pool in documents.rows(document, "pools")
    ]
    yield f"  pools    {', '.join(pools) or 'none'}"
    place = (("socket", "socket"), ("node", "node"), ("L3", "l3"), ("core", "core"))
    yield "  place    " + ", ".join(f"{word} {_known(document.get(key))}" for word, key in place)
    yield from _siblings(document, every)
    if document.get("isolated"):
        yield "  isolated the kernel's scheduler balances nothing there (isolcpus)"
    used = document.get("used")
    if isinstance(used, int | float):
        yield f"  in use   {100 * used:.0f} %"


def _siblings(document: documents.Document, every: list[documents.Document]) -> Iterator[str]:
    """The other threads of its core, and whose they are: they share its pipelines."""
    core = cpuset.CPUSet.parse(str(document.get("siblings") or ""))
    for other in every:
        number = other.get("cpu")
        if number in core and number != document.get("cpu"):
            who = f" {other['holder']}" if other.get("holder") else ""
            yield f"  sibling  CPU {number}: {other.get('owner')}{who}"


def _known(value: object) -> str:
    return "?" if value is None else str(value)
