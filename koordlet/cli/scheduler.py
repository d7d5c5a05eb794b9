"""``koordlet scheduler``: which pod goes to which node, in the foreground, until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import os

from koordlet import log
from koordlet.cli import options
from koordlet.model import errors
from koordlet.state import paths

NAME = "scheduler"
HELP = "decide which pod goes to which node, for a cluster or for standalone nodes"
EXAMPLES = """\
koordlet scheduler                               of the cluster that this pod is in, or standalone
koordlet scheduler --kubeconfig admin.conf       of that cluster
koordlet scheduler --standalone                  over a file of its own; agents are the nodes
koordlet scheduler --config scheduler.yaml       profiles of a KubeSchedulerConfiguration
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", metavar="FILE", help="a KubeSchedulerConfiguration")
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the API server")
    parser.add_argument("--context", metavar="NAME", default="", help="a context of the kubeconfig")
    parser.add_argument(
        "--standalone", action="store_true", help="without an API server, over a file of its own"
    )
    parser.add_argument(
        "--http",
        metavar="ADDRESS:PORT",
        default="127.0.0.1:9317",
        help="where /metrics, /healthz and /readyz are (default: 127.0.0.1:9317)",
    )
    options.state(parser)


def run(args: argparse.Namespace) -> int:
    """Decide until told to stop. Exit 0 after SIGTERM or Ctrl-C."""
    # numpy and the scheduler's room are loaded for this command alone.
    from koordlet import scheduling  # noqa: PLC0415
    from koordlet.scheduler import configuration, manifests  # noqa: PLC0415

    if args.standalone and args.kubeconfig:
        raise errors.UsageError(
            "--standalone and --kubeconfig exclude each other", fix="leave one of them out"
        )
    log.configure("info", "auto")
    chosen = scheduling.usual()
    if args.config is not None:
        found = manifests.load(args.config)
        if len(found) != 1:
            raise errors.ConfigError("not one document", culprit=args.config)
        chosen = configuration.read(found[0], args.config)
    for warning in chosen.warnings:
        log.get().warning("config.warning", detail=warning)
    kubeconfig: str | None = args.kubeconfig
    if kubeconfig is None and not args.standalone and scheduling.in_cluster():
        kubeconfig = ""
    where = paths.choose(os.environ, root=os.geteuid() == 0, state_dir=args.state_dir)
    asyncio.run(
        scheduling.run(
            scheduling.Options(
                kubeconfig=kubeconfig,
                context=args.context,
                database=where.database,
                socket=where.scheduler_socket,
                http=args.http,
                configuration=chosen,
            )
        )
    )
    return 0
