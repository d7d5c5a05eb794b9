"""``koordlet scheduler``: which pod goes to which node, in the foreground, until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from koordlet import log
from koordlet.cli import options
from koordlet.model import errors
from koordlet.state import paths

if TYPE_CHECKING:
    from koordlet.scheduler.process import lifecycle

EXAMPLES = """\
koordlet scheduler                               of the cluster that this pod is in, or standalone
koordlet scheduler --kubeconfig admin.conf       of that cluster
koordlet scheduler --standalone                  over a file of its own; agents are the nodes
koordlet scheduler --config scheduler.yaml       profiles of a KubeSchedulerConfiguration
koordlet scheduler --listen 10.0.0.5:9318 --tls DIR --client '*.nodes.example=report'
"""
#: That of deploy/agent.
_AGENTS = "koordlet-system/koordlet"
_RIGHTS = ("read", "report", "reserve", "admin")


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
    parser.add_argument(
        "--https",
        metavar="ADDRESS:PORT",
        help="the same for other machines, with --tls: for whoever has a token of the cluster and a"
        " role for the path (default: nowhere)",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS:PORT",
        help="where agents of other machines report, with mutual TLS (default: nowhere)",
    )
    parser.add_argument(
        "--tls",
        metavar="DIR",
        help="tls.crt and tls.key for --https and --listen, and ca.crt for --listen; read again"
        " when they change",
    )
    parser.add_argument(
        "--client",
        metavar="NAME=RIGHT[,RIGHT]",
        action="append",
        type=_client,
        default=[],
        help="a name of certificates (`*.` stands for one label), and what they may do:"
        f" {', '.join(_RIGHTS)}; who reports for a node must bear the node's name, too, or send a"
        " token",
    )
    parser.add_argument(
        "--audience",
        metavar="NAME",
        default="",
        help="agents of a cluster may share a certificate, and say which node they are on by a"
        " token of their pod for this audience",
    )
    parser.add_argument(
        "--agent-account",
        metavar="NAMESPACE/NAME",
        action="append",
        type=_account,
        default=[],
        help="with --audience: a service account of agents; a token of any other one counts for"
        f" nothing (default: {_AGENTS})",
    )
    parser.add_argument(
        "--trust-domain",
        metavar="DOMAIN",
        default="",
        help="certificates may name their node by a URI, spiffe://DOMAIN/node/NAME (default: by a"
        " DNS name only)",
    )
    parser.add_argument(
        "--with-parent", metavar="PID", type=int, help="end when this parent process ends"
    )
    options.ignoring(parser)
    options.state(parser)


def _client(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, rights = text.rpartition("=")
    several = tuple(rights.split(","))
    if not name or not set(several) <= set(_RIGHTS):
        raise argparse.ArgumentTypeError(f"NAME=RIGHT, with rights of {', '.join(_RIGHTS)}")
    return name, several


def _account(text: str) -> str:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError("NAMESPACE/NAME of a service account")
    return text


def _remote(args: argparse.Namespace) -> lifecycle.GrpcListener | None:
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415 -- as below

    if args.listen is None:
        return None
    folder = _folder(args, "--listen")
    return lifecycle.GrpcListener(
        address=args.listen,
        certificate=folder / "tls.crt",
        key=folder / "tls.key",
        authority=folder / "ca.crt",
        clients=tuple(args.client),
        audience=args.audience,
        accounts=tuple(args.agent_account) or (_AGENTS,),
        trust_domain=args.trust_domain,
    )


def _secure(args: argparse.Namespace) -> lifecycle.HttpsListener | None:
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415 -- as below

    if args.https is None:
        return None
    folder = _folder(args, "--https")
    return lifecycle.HttpsListener(
        address=args.https, certificate=folder / "tls.crt", key=folder / "tls.key"
    )


def _folder(args: argparse.Namespace, option: str) -> Path:
    if args.tls is None:
        raise errors.UsageError(f"{option} needs --tls", fix="name the folder of the certificates")
    return Path(args.tls)


def _ask_a_cluster(args: argparse.Namespace, kubeconfig: str | None) -> None:
    """Tokens are confirmed by an API server, and by nobody else."""
    if kubeconfig is not None:
        return
    for option in ("https", "audience"):
        if getattr(args, option):
            raise errors.UsageError(
                f"--{option} needs a cluster: its API server confirms tokens",
                fix="leave it out, or name the cluster with --kubeconfig",
            )


def run(args: argparse.Namespace) -> int:
    """Decide until told to stop. Exit 0 after SIGTERM or Ctrl-C."""
    # numpy and the scheduler's room are loaded for this command alone.
    from koordlet.agent import scheduler_child  # noqa: PLC0415
    from koordlet.kubeapi import manifests  # noqa: PLC0415
    from koordlet.scheduler.loop import configuration  # noqa: PLC0415
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415

    if args.with_parent is not None and not scheduler_child.end_with(args.with_parent):
        return 0
    if args.standalone and args.kubeconfig:
        raise errors.UsageError(
            "--standalone and --kubeconfig exclude each other", fix="leave one of them out"
        )
    log.configure("info", "auto")
    chosen = lifecycle.usual()
    if args.config is not None:
        bodies = manifests.load(args.config)
        if len(bodies) != 1:
            raise errors.ConfigError("not one document", culprit=args.config)
        chosen = configuration.read(bodies[0], args.config)
    for warning in chosen.warnings:
        log.get().warning("config.warning", detail=warning)
    kubeconfig: str | None = args.kubeconfig
    if kubeconfig is None and not args.standalone and lifecycle.in_cluster():
        kubeconfig = ""
    _ask_a_cluster(args, kubeconfig)
    where = paths.choose(os.environ, root=os.geteuid() == 0, state_dir=args.state_dir)
    asyncio.run(
        lifecycle.run(
            lifecycle.Options(
                kubeconfig=kubeconfig,
                context=args.context,
                database=where.database,
                socket=where.scheduler_socket,
                http=args.http,
                https=_secure(args),
                configuration=chosen,
                ignores_keys=args.ignores_keys,
                remote=_remote(args),
            )
        )
    )
    return 0
