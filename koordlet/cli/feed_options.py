"""Shared by ``get`` and ``watch``: the address to ask, and how answers are printed.

Covers: options of the connection, errors, tables of a node and of its workloads.
Does not cover: asking (``koordlet.client``).
"""

from __future__ import annotations

import argparse
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from koordlet.cli import options, output
from koordlet.model import errors, quantity
from koordlet.state import paths

if typing.TYPE_CHECKING:
    from koordlet import client as clients
    from koordlet.rpc.gen import feed_pb2

_T = TypeVar("_T")

#: Where a scheduler listens when nothing else is said.
SCHEDULER_SOCKET = "scheduler.sock"
_OPTIONS = {
    "--address ADDRESS": "unix:/path, or host:port with --tls (default: the socket of this"
    " machine's agent)",
    "--tls CERTIFICATE KEY AUTHORITY": "files for mutual TLS",
    "--state-dir DIR": "where that agent has its socket",
}


def add(parser: argparse.ArgumentParser, forms: Sequence[str] = ("table", "json")) -> None:
    """Declare the options."""
    options.declare(parser, _OPTIONS)
    options.output(parser, forms)


def address(args: argparse.Namespace, *, scheduler: bool = False) -> str:
    """Whom to ask."""
    if args.address:
        return str(args.address)
    where = paths.current(args.state_dir).socket
    return f"unix:{where.parent / SCHEDULER_SOCKET if scheduler else where}"


def open_node(args: argparse.Namespace) -> clients.Node:
    """The agent's feed."""
    from koordlet import client  # noqa: PLC0415 -- gRPC: 100 ms of a `--help`

    return guarded(lambda: client.connect(address(args), _certificates(args)))


def scheduler_nodes(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Ask a scheduler for its nodes."""
    from koordlet import client  # noqa: PLC0415 -- gRPC: 100 ms of a `--help`
    from koordlet.rpc import plain  # noqa: PLC0415 -- protobuf: 16 ms of a `--help`

    asked = address(args, scheduler=True)
    nodes = guarded(
        lambda: client.scheduler(asked, args.name or "", _certificates(args)),
        fix="does `koordlet scheduler` run there? or name it with --address or --state-dir",
    )
    return [plain.plain(node) for node in nodes]


def _certificates(args: argparse.Namespace) -> tuple[str, str, str] | None:
    return None if args.tls is None else tuple(args.tls)


def guarded(
    ask: Callable[[], _T],
    fix: str = "start koordlet run, or name it with --address or --state-dir",
) -> _T:
    """The answer, or an error of ours."""
    from koordlet import client  # noqa: PLC0415 -- gRPC: 100 ms of a `--help`

    try:
        return ask()
    except client.NoAnswerError as error:
        raise errors.HostError(f"nobody answers: {error}", fix=fix) from error
    except client.RefusedError as error:
        raise errors.HostError(f"refused: {error}", fix="ask whom --address names") from error


def document(state: feed_pb2.Node) -> dict[str, Any]:
    """The node as plain data."""
    from koordlet.rpc import plain  # noqa: PLC0415 -- protobuf: 16 ms of a `--help`

    node: dict[str, Any] = plain.plain(state)
    return node


def node_lines(state: dict[str, Any]) -> list[str]:
    """The node as a table."""
    summary, used = state.get("summary", {}), state.get("usage", {}).get("node", {})
    memory = used.get("memoryBytes")
    free = ",".join(
        domain["cpus"] for domain in state.get("free", {}).get("domains", ()) if domain["cpus"]
    )
    pressed = [
        signal["name"]
        for signal in state.get("pressure", {}).get("signals", ())
        if signal.get("met")
    ]
    offers = state.get("bestEffort", {}).get("offers", ())
    offered = (f"{offer['resource'].rpartition('/')[2]}={offer['amount']}" for offer in offers)
    about = (summary.get("name", ""), summary.get("mode", ""))
    row = [
        *(*about, "yes" if summary.get("ready") else "no", output.cores(used.get("cpuMilli"))),
        "-" if memory is None else f"{memory / 2**30:.1f}Gi",
        *(free or "-", ",".join(pressed) or "-", " ".join(offered) or "-"),
    ]
    head = ["NAME", "MODE", "READY", "CPU", "MEMORY", "FREE CPUS", "PRESSURE", "OFFERED"]
    return output.table([row], head=head)


def workload_lines(state: dict[str, Any], name: str | None) -> list[str]:
    """Workloads as a table."""
    rows = [
        [
            *(row["namespace"], row["name"], row["qos"], row.get("cpus") or "-"),
            *(output.cores(row.get("usageMilli")), row.get("cgroup") or "-"),
        ]
        for row in workloads(state, name)
    ]
    return output.table(rows, head=["NAMESPACE", "NAME", "QOS", "CPUS", "CPU", "CGROUP"])


def workloads(state: dict[str, Any], name: str | None) -> list[dict[str, Any]]:
    """Those of a name, given alone or as namespace/name; all without one."""
    return [
        row
        for row in state.get("workloads", {}).get("workloads", [])
        if name in (None, row["name"], f"{row['namespace']}/{row['name']}")
    ]


def scheduler_lines(nodes: list[dict[str, Any]]) -> list[str]:
    """Format a scheduler's nodes as a table."""
    rows = [
        [
            node["name"],
            str(node["pods"]),
            *(_share(node, "cpu"), _share(node, "memory")),
            "no" if node["unschedulable"] else "yes",
            ",".join(node["pressures"]) or "-",
        ]
        for node in nodes
    ]
    return output.table(rows, head=["NAME", "PODS", "CPU", "MEMORY", "SCHEDULABLE", "PRESSURE"])


def _share(node: dict[str, Any], name: str) -> str:
    pair = node["requested"].get(name, "0"), node["allocatable"].get(name, "-")
    return "/".join(map(_gibibytes, pair) if name == "memory" else pair)


def _gibibytes(amount: str) -> str:
    """Format an amount in Gi; any other text stays."""
    try:
        return f"{quantity.units(amount) / 2**30:.1f}Gi"
    except ValueError:
        return amount
