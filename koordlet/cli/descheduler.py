"""``koordlet descheduler``: which pods should leave their nodes, and their evictions."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from koordlet import log
from koordlet.cli import descheduling, options, output, scheduler

EXAMPLES = """\
koordlet descheduler --config policy.yaml              of the cluster that this pod is in
koordlet descheduler --config policy.yaml --dry-run --once --kubeconfig admin.conf
kubectl get nodes,pods -A -o json > all.json; koordlet descheduler all.json --config policy.yaml
"""
_OPTIONS = {
    "--config FILE": "a DeschedulerPolicy of Kubernetes' descheduler or a DeschedulerConfiguration"
    " of Koordinator, also in a ConfigMap",
    "--scheduler-config FILE": "a KubeSchedulerConfiguration by which it is judged where pods fit,"
    " a ReschedulingConfiguration that bounds evictions, or both",
    "--dry-run": "send nothing, and tell what would go, whatever the configuration says",
    "--once": "one round, and its result",
    "--kubeconfig FILE": "how to reach the API server",
    "--context NAME": "a context of the kubeconfig",
    "--http ADDRESS:PORT": "where /metrics, /healthz and /readyz are (default: 127.0.0.1:9319)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="objects as kubectl prints them: a dry run of them"
    )
    options.declare(
        parser,
        _OPTIONS,
        config={"required": True},
        context={"default": ""},
        http={"default": "127.0.0.1:9319"},
    )
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Decide until told to stop. Exit 0 after SIGTERM or Ctrl-C."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML: 8 ms of a `--help`
    from koordlet.scheduler.loop import configuration  # noqa: PLC0415 -- numpy: 280 ms
    from koordlet.scheduler.process import cluster_process, descheduler  # noqa: PLC0415 -- with it

    settings = descheduling.read(args.config)
    if args.files:
        complaints: list[str] = []
        bodies = [body for path in args.files for body in manifests.load(path, complaints)]
        output.warn(complaints)
        return descheduling.show(args.output, bodies, settings, now=None)
    kubeconfig = cluster_process.chosen(args.kubeconfig, ", or FILE with its objects for a dry run")
    log.configure("info", "auto")
    chosen = scheduler.read_configuration(args.scheduler_config)
    for warning in (*settings.warnings, *(() if chosen is None else chosen.warnings)):
        log.get().warning("config.warning", detail=warning)
    usual = configuration.usual() if chosen is None else chosen
    document = asyncio.run(
        descheduler.run(
            descheduler.DeschedulerOptions(
                kubeconfig=kubeconfig,
                context=args.context,
                http=args.http,
                settings=settings,
                profiles=usual.profiles,
                disruption=usual.disruption,
                disruption_file=None if chosen is None else Path(args.scheduler_config),
                dry_run=args.dry_run,
                once=args.once or settings.interval_seconds == 0,
            )
        )
    )
    if args.once:
        return output.show(args.output, document, descheduling.lines(document))
    return 0
