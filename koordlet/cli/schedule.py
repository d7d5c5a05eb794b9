"""``koordlet schedule``: hand pods to a standalone scheduler, and see where each went."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koordlet.cli import options, output
from koordlet.model import errors
from koordlet.state import paths

EXAMPLES = """\
koordlet schedule -f pods.yaml
koordlet schedule -f node.yaml -f pods.yaml        nodes, priority classes and budgets, too
koordlet schedule -f pods.yaml --wait 30 -o json
"""
_PAUSE = 0.1
_OPTIONS = {
    "-f, --file FILE": "objects to hand in",
    "--wait SECONDS": "how long to wait for an answer about each pod (default: 10)",
    "--socket PATH": "the scheduler's socket",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    file, wait = {"action": "append", "required": True}, {"type": options.seconds, "default": 10.0}
    options.declare(parser, _OPTIONS, file=file, wait=wait)
    options.state(parser)
    options.output(parser, ("table", "json"))


def run(args: argparse.Namespace) -> int:
    """Hand in, wait, print. Exit 1 where an object was not taken in."""
    from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML: 8 ms of a `--help`
    from koordlet.rpc import client as rpc_client  # noqa: PLC0415 -- gRPC: 70 ms of a `--help`

    bodies = [body for path in args.file for body in manifests.load(path)]
    if not bodies:
        raise errors.ConfigError("no objects", culprit=args.file[0])
    where = paths.current(args.state_dir)
    socket = Path(args.socket) if args.socket else where.scheduler_socket
    with rpc_client.PlacingClient(socket) as client:
        taken = client.submit([json.dumps(body, default=str) for body in bodies])
        pods = [receipt for receipt in taken if receipt.kind == "Pod" and not receipt.error]
        answers = _followed(client, pods, time.monotonic() + args.wait)
    errors_found = refused(taken, bodies)
    rows = [
        {"pod": key, "node": why.node or None, "message": why.message}
        for key, why in answers.items()
    ]
    document = {"pods": rows, "refused": errors_found}
    output.show(args.output, document, _lines(rows, errors_found))
    return 1 if errors_found else 0


def refused(taken: Sequence[Any], bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """List the refused objects and why; an object without a name is named by its place."""
    return [
        {
            "kind": answer.kind or str(body.get("kind") or "?"),
            "name": f"{answer.namespace}/{answer.name}" if answer.name else f"(object {place})",
            "error": answer.error,
        }
        for place, (answer, body) in enumerate(zip(taken, bodies, strict=True), 1)
        if answer.error
    ]


def _followed(client: Any, pods: Sequence[Any], deadline: float) -> dict[str, Any]:
    """The newest answer about each pod; waits for those that have none yet."""
    answers: dict[str, Any] = {}
    while True:
        for pod in pods:
            key = f"{pod.namespace}/{pod.name}"
            if key not in answers or not (answers[key].node or answers[key].message):
                answers[key] = client.why(pod.namespace, pod.name)
        answered = all(answer.node or answer.message for answer in answers.values())
        if answered or time.monotonic() >= deadline:
            return answers
        time.sleep(_PAUSE)


def _lines(rows: Sequence[Mapping[str, Any]], refused: Sequence[Mapping[str, str]]) -> list[str]:
    silent = "no answer yet"
    table = [
        (row["pod"], row["node"] or "-", row["message"] or ("" if row["node"] else silent))
        for row in rows
    ]
    lines = output.table(table, head=("POD", "NODE", "WHY NOT")) if table else []
    lines += [f"{row['kind']} {row['name']} was not taken in: {row['error']}" for row in refused]
    return lines or ["taken in"]
