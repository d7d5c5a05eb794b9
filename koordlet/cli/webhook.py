"""``koordlet webhook``: what ClusterColocationProfiles make of a cluster's new pods."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from koordlet import log
from koordlet.cli import options

EXAMPLES = """\
koordlet webhook --tls /etc/koordlet/tls           of the cluster that this pod is in
koordlet webhook --tls DIR --kubeconfig admin.conf --listen 10.0.0.5:9443
kubectl apply -k deploy/webhook                    its Deployment and its registration
"""
_OPTIONS = {
    "--tls DIR": "tls.crt and tls.key that API servers are shown; read again when they change",
    "--listen ADDRESS:PORT": "where API servers ask (default: 0.0.0.0:9443)",
    "--kubeconfig FILE": "how to reach the API server",
    "--context NAME": "a context of the kubeconfig",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.declare(
        parser,
        _OPTIONS,
        tls={"required": True, "type": Path},
        listen={"default": "0.0.0.0:9443"},
        context={"default": ""},
    )


def run(args: argparse.Namespace) -> int:
    """Answer until told to stop. Exit 0 after SIGTERM or Ctrl-C."""
    from koordlet.scheduler.process import cluster_process, webhook  # noqa: PLC0415 -- of it alone

    kubeconfig = cluster_process.chosen(args.kubeconfig)
    log.configure("info", "auto")
    asyncio.run(
        webhook.run(
            webhook.WebhookOptions(
                kubeconfig=kubeconfig,
                context=args.context,
                address=args.listen,
                certificate=args.tls / "tls.crt",
                key=args.tls / "tls.key",
            )
        )
    )
    return 0
