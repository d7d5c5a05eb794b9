"""Shared by ``drain`` and ``evict``: carrying moves out, and telling how far they are.

Covers: common options, signals, progress, the document. Does not cover: the commands, the moves
(``scheduler.loop.pod_moves``).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from koordlet import log
from koordlet.cli import options, output, scheduler
from koordlet.model import errors
from koordlet.state import paths

if TYPE_CHECKING:
    from koordlet.rpc import client as rpc_client

Document = dict[str, Any]
_OPTIONS = {
    "--reason TEXT": "why, as events and the pod's annotation say it",
    "--timeout SECONDS": "give up after so long (default: never)",
    "--without-room": "pods of schedulers that make no reservations are evicted all the same",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.declare(parser, _OPTIONS, timeout={"type": options.seconds}, reason={"default": ""})


def run(
    args: argparse.Namespace,
    *,
    by: str,
    node: str = "",
    pod: str = "",
    avoid: float | None = None,
) -> int:
    """Move, and print; exit 1 where somebody stays who was to go.

    ``avoid``: seconds for which its workload avoids the node; ``None``: as long as usual.
    """
    if args.kubeconfig is None:
        if args.without_room:
            raise errors.UsageError(
                "a standalone scheduler has no pods of others",
                culprit="--without-room",
                fix="name the cluster with --kubeconfig, or leave it out",
            )
        done, several = _followed(args, node, pod, avoid)
    else:
        done, several = asyncio.run(_moved(args, by, node, pod, avoid))
    if args.output == "json":
        output.print_json({"by": by, "done": done, "pods": several})
    else:
        moved = sum(each["state"] == "Moved" for each in several)
        output.say(f"{moved} moved, {len(_left(several))} left")
    return 0 if done else 1


def _left(several: Iterable[Document]) -> list[Document]:
    return [each for each in several if each["state"] not in {"Moved", "Stays"}]


def _tell(args: argparse.Namespace, progress: Document) -> None:
    message = f": {progress['message']}" if progress["message"] else ""
    text = f"{progress['state']:<9} {progress['pod']} {progress['node']}{message}"
    if args.output == "json":
        output.say(text)
    else:
        print(output.visible(text), flush=True)


def _client(args: argparse.Namespace) -> rpc_client.MovesClient:
    from koordlet.rpc import client as rpc_client  # noqa: PLC0415 -- gRPC: 70 ms of a `--help`

    where = paths.current(args.state_dir)
    return rpc_client.MovesClient(where.scheduler_socket)


def _followed(
    args: argparse.Namespace, node: str, pod: str, avoid: float | None
) -> tuple[bool, list[Document]]:
    """Have a standalone scheduler do it."""
    from koordlet.rpc import moving  # noqa: PLC0415 -- with gRPC

    wanted = moving.MoveRequest(
        node=node,
        pod=pod,
        reason=args.reason,
        loses_data=args.delete_local_data,
        timeout=args.timeout,
        avoid=avoid,
    )
    states: dict[str, Document] = {}
    with _client(args) as client:
        try:
            for move in client.move(wanted):
                states[move.pod] = {
                    "pod": move.pod, "state": move.state,
                    "node": move.node, "message": move.message,
                }  # fmt: skip
                _tell(args, states[move.pod])
        except KeyboardInterrupt:
            output.say("the scheduler gives back what is held")
            return False, list(states.values())
    return not _left(states.values()), list(states.values())


async def _moved(
    args: argparse.Namespace, by: str, node: str, pod: str, avoid: float | None
) -> tuple[bool, list[Document]]:
    """Do it here, on a cluster."""
    from koordlet.scheduler.loop import configuration, pod_moves  # noqa: PLC0415 -- numpy: 170 ms
    from koordlet.scheduler.process import cluster_process  # noqa: PLC0415 -- with it

    wanted = pod_moves.MoveOptions(
        by=by,
        reason=args.reason,
        node=node,
        pod=pod,
        loses_data=args.delete_local_data,
        without_room=args.without_room,
        timeout=args.timeout,
        avoid_seconds=avoid,
    )
    chosen = scheduler.read_configuration(args.config) or configuration.usual()
    stop = cluster_process.stopping()
    log.configure("error", "auto")  # progress is what there is to read
    async with cluster_process.cluster(args.kubeconfig, args.context, "koordlet") as store:
        moving = pod_moves.PodMoves(
            store,
            wanted,
            chosen.profiles,
            chosen.disruption,
            instance=f"{socket.gethostname()}_{os.getpid()}",
            tell=lambda progress: _tell(args, progress.body()),
        )
        work, stopped = asyncio.ensure_future(moving.run()), asyncio.ensure_future(stop.wait())
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not work.done():
            output.say("giving back what is held")
            work.cancel()
        done: Any = (await asyncio.gather(work, return_exceptions=True))[0]
        if isinstance(done, Exception):
            raise done
        return done is True, [state.body() for state in moving.states.values()]


def undo(args: argparse.Namespace) -> int:
    """Uncordon, and end what is under way; how many moves that were."""
    if args.kubeconfig is not None:
        return asyncio.run(_undone(args))
    with _client(args) as client:
        return client.undo_drain(args.node)


async def _undone(args: argparse.Namespace) -> int:
    from koordlet.scheduler.loop import pod_moves  # noqa: PLC0415 -- as above
    from koordlet.scheduler.process import cluster_process  # noqa: PLC0415 -- as above

    async with cluster_process.cluster(args.kubeconfig, args.context, "koordlet") as store:
        return await pod_moves.undo(store, args.node)
