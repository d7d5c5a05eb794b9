"""``koordlet scheduler``: which pod goes to which node, in the foreground, until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import gc
from pathlib import Path
from typing import TYPE_CHECKING

from koordlet import log
from koordlet.agent import scheduler_child
from koordlet.cli import descheduling, options
from koordlet.model import errors
from koordlet.state import paths

if TYPE_CHECKING:
    from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
    from koordlet.scheduler.loop import configuration
    from koordlet.scheduler.process import lifecycle

EXAMPLES = """\
koordlet scheduler                               of the cluster that this pod is in, or standalone
koordlet scheduler --kubeconfig admin.conf       of that cluster
koordlet scheduler --standalone                  over a file of its own; agents are the nodes
koordlet scheduler --config scheduler.yaml       profiles of a KubeSchedulerConfiguration
koordlet scheduler --deschedule policy.yaml      moves pods as well, by what agents report
koordlet scheduler --listen 10.0.0.5:9318 --tls DIR --client '*.nodes.example=report'
"""
#: Of the collector: objects that may come before it looks for cycles among them.
YOUNG_OBJECTS = 10_000
#: That of deploy/agent.
_AGENTS = "koordlet-system/koordlet"
_RIGHTS = ("read", "report", "reserve", "admin")
ADMISSION_PLUGINS = ("ExtendedResourceToleration", "LimitPodHardAntiAffinityTopology")
_OPTIONS = {
    "--config FILE": "a KubeSchedulerConfiguration, a ReschedulingConfiguration or both",
    "--deschedule FILE": "deschedule as well, by a DeschedulerPolicy or a DeschedulerConfiguration",
    "--kubeconfig FILE": "how to reach the API server",
    "--context NAME": "a context of the kubeconfig",
    "--standalone": "without an API server, over a file of its own",
    "--enable-admission-plugins NAME[,NAME]": f"standalone: of {', '.join(ADMISSION_PLUGINS)}"
    " (default: none)",
    "--http ADDRESS:PORT": "where /metrics, /healthz and /readyz are (default: 127.0.0.1:9317)",
    "--https ADDRESS:PORT": "the same for other machines, with --tls: for whoever has a token of"
    " the cluster and a role for the path (default: nowhere)",
    "--listen ADDRESS:PORT": "where agents of other machines report, with mutual TLS"
    " (default: nowhere)",
    "--tls DIR": "tls.crt and tls.key for --https and --listen, and ca.crt for --listen; read again"
    " when they change",
    "--client NAME=RIGHT[,RIGHT]": "a name of certificates (`*.` stands for one label), and what"
    f" they may do: {', '.join(_RIGHTS)}; who reports for a node must bear the node's name, too, or"
    " send a token",
    "--audience NAME": "agents of a cluster may share a certificate, and say which node they are on"
    " by a token of their pod for this audience",
    "--agent-account NAMESPACE/NAME": "with --audience: a service account of agents; a token of any"
    f" other one counts for nothing (default: {_AGENTS})",
    "--trust-domain DOMAIN": "certificates may name their node by a URI, spiffe://DOMAIN/node/NAME"
    " (default: by a DNS name only)",
    "--with-parent PID": "end when this parent process ends",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.declare(
        parser,
        _OPTIONS,
        context={"default": ""},
        http={"default": "127.0.0.1:9317"},
        enable_admission_plugins={"type": _plugins, "default": frozenset()},
        client={"action": "append", "type": _client, "default": []},
        audience={"default": ""},
        agent_account={"action": "append", "type": _account, "default": []},
        trust_domain={"default": ""},
        with_parent={"type": int},
    )
    options.ignoring(parser)
    options.state(parser)


def _plugins(text: str) -> frozenset[str]:
    names = frozenset(text.split(","))
    if names <= set(ADMISSION_PLUGINS):
        return names
    raise argparse.ArgumentTypeError(f"names of {', '.join(ADMISSION_PLUGINS)}")


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
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415 -- numpy: 280 ms of a `--help`

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
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415 -- it too

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


def read_configuration(path: str | None) -> configuration.Configuration | None:
    """The KubeSchedulerConfiguration of ``--config``, where it was given."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML: 8 ms of a `--help`
    from koordlet.scheduler.loop import configuration  # noqa: PLC0415 -- numpy: 170 ms of a `--help`

    if path is None:
        return None
    return configuration.read_all(manifests.load(path), path)


def _descheduling(path: str) -> DeschedulerSettings:
    settings = descheduling.read(path)
    for warning in settings.warnings:
        log.get().warning("config.warning", detail=warning)
    return settings


def run(args: argparse.Namespace) -> int:
    """Decide until told to stop. Exit 0 after SIGTERM or Ctrl-C."""
    from koordlet.scheduler.loop import configuration  # noqa: PLC0415 -- numpy: 280 ms of a `--help`
    from koordlet.scheduler.process import cluster_process, lifecycle  # noqa: PLC0415 -- with it

    if args.with_parent is not None and not scheduler_child.end_with(args.with_parent):
        return 0
    if args.standalone and args.kubeconfig:
        raise errors.UsageError(
            "--standalone and --kubeconfig exclude each other", fix="leave one of them out"
        )
    log.configure("info", "auto")
    chosen = read_configuration(args.config) or configuration.usual()
    for warning in chosen.warnings:
        log.get().warning("config.warning", detail=warning)
    kubeconfig: str | None = args.kubeconfig
    if kubeconfig is None and not args.standalone and cluster_process.in_cluster():
        kubeconfig = ""
    _ask_a_cluster(args, kubeconfig)
    if kubeconfig is not None and args.enable_admission_plugins:
        raise errors.UsageError(
            "--enable-admission-plugins is for --standalone: a cluster's API server admits pods",
            fix="leave it out, and enable the plugins there",
        )
    where = paths.current(args.state_dir)
    # A pod that comes makes many objects that stay, and hardly a cycle.
    gc.set_threshold(YOUNG_OBJECTS)
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
                descheduling=None if args.deschedule is None else _descheduling(args.deschedule),
                config=Path(args.config) if args.config is not None else None,
                ignores_keys=args.ignores_keys,
                admission=args.enable_admission_plugins,
                remote=_remote(args),
            )
        )
    )
    return 0
