"""Shared by the commands that look at a whole cluster once: its objects, wherever they are.

Covers: the options, reading, the moment that is taken as now. Does not cover: what follows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from koordlet.cli import options, output, scheduler
from koordlet.model import errors
from koordlet.state import paths

Bodies = list[dict[str, Any]]
_OPTIONS = {
    "--kubeconfig FILE": "the cluster itself, and not files",
    "--context NAME": "a context of the kubeconfig",
    "--config FILE": "a KubeSchedulerConfiguration by which it is judged where pods fit, a"
    " ReschedulingConfiguration that bounds evictions, or both",
    "--state-dir DIR": "without FILE and --kubeconfig: the DIR that the standalone scheduler was"
    " started with",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare where the objects are."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="objects as kubectl prints them, for a look at them",
    )
    options.declare(parser, _OPTIONS, context={"default": ""})
    options.output(parser, ("table", "json"))


def read(args: argparse.Namespace) -> Bodies:
    """The objects; a line on stderr names each that is left out."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML: 8 ms of a `--help`

    if args.files and args.kubeconfig is not None:
        raise errors.UsageError(
            "whose cluster?", fix="name FILE with its objects, or the cluster with --kubeconfig"
        )
    warnings: list[str] = []
    if args.files:
        bodies = [dict(body) for path in args.files for body in manifests.load(path, warnings)]
    elif args.kubeconfig is None:
        bodies = _of_standalone(args.state_dir)
    else:
        bodies, warnings = asyncio.run(_listed(args.kubeconfig, args.context))
    output.warn(warnings)
    return bodies


def _of_standalone(state_dir: str | None) -> Bodies:
    from koordlet.rpc import client as rpc_client  # noqa: PLC0415 -- gRPC: 70 ms of a `--help`

    where = paths.current(state_dir)
    with rpc_client.MovesClient(where.scheduler_socket) as client:
        return [json.loads(spelled) for spelled in client.objects()]


async def _listed(kubeconfig: str, context: str) -> tuple[Bodies, list[str]]:
    from koordlet.scheduler.process import cluster_process  # noqa: PLC0415 -- of a cluster alone
    from koordlet.scheduler.sim import cluster_dump  # noqa: PLC0415 -- as above

    async with cluster_process.cluster(kubeconfig, context, "koordlet") as store:
        return await cluster_dump.listed(store)


def scene(args: argparse.Namespace, bodies: Bodies) -> Any:
    """The cluster with the limiter over it; of files at the newest time in them."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- as above
    from koordlet.scheduler.loop import configuration  # noqa: PLC0415 -- as above
    from koordlet.scheduler.sim import drain  # noqa: PLC0415 -- as above

    chosen = scheduler.read_configuration(args.config)
    usual = configuration.usual() if chosen is None else chosen
    newest = manifests.newest(bodies) if args.files else None
    made = drain.LimitedDump(
        bodies,
        time.time() if newest is None else newest,
        served=usual.profiles,
        disruption=usual.disruption,
    )
    output.warn((*usual.warnings, *made.warnings))
    return made
