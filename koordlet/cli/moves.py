"""Shared by ``drain`` and ``evict``: carrying moves out, and telling how far they are.

Covers: common options, signals, progress, the document. Does not cover: the commands, the moves
(``scheduler.loop.pod_moves``).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

from koordlet import log
from koordlet.cli import options, output, scheduler

if TYPE_CHECKING:
    from koordlet.scheduler.loop import pod_moves

_OPTIONS = {
    "--reason TEXT": "why, as events and the pod's annotation say it",
    "--timeout SECONDS": "give up after so long (default: never)",
    "--without-room": "pods of schedulers that make no reservations are evicted all the same",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.declare(parser, _OPTIONS, timeout={"type": options.seconds}, reason={"default": ""})


def run(args: argparse.Namespace, *, by: str, node: str = "", pod: str = "") -> int:
    """Move, and print; exit 1 where somebody stays who was to go."""
    from koordlet.scheduler.loop import pod_moves  # noqa: PLC0415 -- numpy: 170 ms of a `--help`

    wanted = pod_moves.MoveOptions(
        by=by,
        reason=args.reason,
        node=node,
        pod=pod,
        loses_data=args.delete_local_data,
        without_room=args.without_room,
        timeout=args.timeout,
    )
    done, states = asyncio.run(_moved(args, wanted))
    if args.output == "json":
        several = [state.body() for state in states]
        output.print_json({"by": by, "done": done, "pods": several})
    else:
        moved = sum(state.state == "Moved" for state in states)
        left = [state for state in states if state.state not in {"Moved", "Stays"}]
        output.say(f"{moved} moved, {len(left)} left")
    return 0 if done else 1


async def _moved(
    args: argparse.Namespace, wanted: pod_moves.MoveOptions
) -> tuple[bool, list[pod_moves.Progress]]:
    from koordlet.scheduler.loop import configuration, pod_moves  # noqa: PLC0415 -- as above
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415 -- as above

    chosen = scheduler.read_configuration(args.config) or configuration.usual()
    stop = lifecycle.stopping()
    log.configure("error", "auto")  # progress is what there is to read

    def tell(progress: pod_moves.Progress) -> None:
        message = f": {progress.message}" if progress.message else ""
        text = f"{progress.state:<9} {progress.pod} {progress.node}{message}"
        if args.output == "json":
            output.say(text)
        else:
            print(output.visible(text), flush=True)

    async with lifecycle.cluster(args.kubeconfig, args.context, "koordlet") as store:
        moving = pod_moves.PodMoves(
            store,
            wanted,
            chosen.profiles,
            chosen.disruption,
            instance=f"{socket.gethostname()}_{os.getpid()}",
            tell=tell,
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
        return done is True, list(moving.states.values())


async def undo(args: argparse.Namespace) -> int:
    """Uncordon, and end what is under way."""
    from koordlet.scheduler.loop import pod_moves  # noqa: PLC0415 -- numpy: 170 ms of a `--help`
    from koordlet.scheduler.process import lifecycle  # noqa: PLC0415 -- as above

    async with lifecycle.cluster(args.kubeconfig, args.context, "koordlet") as store:
        return await pod_moves.undo(store, args.node)
