"""``koordlet run``: the agent, in the foreground, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import errno
import functools
import gc
import os
import signal
import sys
import typing
from collections.abc import Callable

from koordlet import log
from koordlet.agent import bootstrap, endpoints, lifecycle, loop, reload, stop_signal
from koordlet.agent import sources as agent_sources
from koordlet.cli import options, output
from koordlet.config import examiner, reloader, sourced
from koordlet.host.systemd import notify
from koordlet.model import errors
from koordlet.report import view

if typing.TYPE_CHECKING:
    from koordlet.demo import stage
    from koordlet.host.fs import root
    from koordlet.state import paths

NAME = "run"
HELP = "run the agent on this machine until it is told to stop; stopping puts everything back"
EXAMPLES = """\
koordlet run                              with /etc/koordlet/config.yaml
koordlet run --observe                    decide and show everything, change nothing
koordlet run --demo                       with work to look at; not as root, on a recorded machine
koordlet run --scheduler                  with a scheduler of its own, for `reserve` and `schedule`
koordlet run --config node.yaml --state-dir /var/lib/koordlet-test
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.state(parser)
    options.eviction(parser)
    parser.add_argument(
        "--observe", action="store_true", help="do everything but act (also without root)"
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help="start a latency-sensitive service and a best-effort hog to look at; without root,"
        " play the same on a recorded machine, in memory",
    )
    parser.add_argument(
        "--scheduler",
        action="store_true",
        help="run a standalone scheduler beside it, as its child (scheduler.run)",
    )
    parser.add_argument(
        "--http",
        metavar="ADDRESS:PORT",
        default=None,
        help="where the HTTP server listens (report.http.address)",
    )


def run(args: argparse.Namespace) -> int:
    """Open, run, close. Exit 0 after SIGTERM or Ctrl-C."""
    try:
        while _run(args):
            stop_signal.listen()
    except errors.TakenError:
        raise  # the agent that runs looks after its limits
    except Exception as error:
        if isinstance(error, errors.HostError) and error.errno == errno.ETIMEDOUT:
            raise  # whoever asks that disk again stands there as well
        from koordlet.cli import restore  # noqa: PLC0415 -- a run that goes well needs none of it

        restore.after_failed_start(args)
        raise
    return 0


def _run(args: argparse.Namespace) -> bool:
    """One life of the agent; ``True`` where it begins anew, with a configuration at last."""
    # A reload that comes before the loop listens is not a reason to die: this start reads the file.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    flags = _flags(args)
    host = bootstrap.host(args)
    if not host.live:
        raise errors.UsageError("run works on the live machine only", fix="unset KOORDLET_ROOT")
    if args.demo:
        return _play(args, host, flags)
    start = bootstrap.start(args, flags)
    config = start.config
    _configure_log(config)
    if start.refused is not None:
        output.say(f"{start.refused}; in force: {start.instead}")
    run_line = bootstrap.open_line(args, host, config)
    why = bootstrap.why_observe(config, run_line.observer.layout)
    if why:
        output.say(f"observing only, changing nothing: {why}")
    where = bootstrap.state_paths(args, config)
    who = lifecycle.Agent(run_line, where, enforce=not why)
    return _live(args, who, where, flags, endpoints.Surfaces, start=start)


def _play(args: argparse.Namespace, host: root.HostRoot, flags: dict[str, object]) -> bool:
    """The agent with the demo's workloads, on the stage that this machine allows."""
    from koordlet.demo import stage  # noqa: PLC0415 -- a service plays nothing

    play = stage.choose(args, host, _for_demo(args, flags))
    try:
        _configure_log(play.config)
        where = play.paths(bootstrap.state_paths(args, play.config))
        who = lifecycle.Agent(play.line, where, enforce=not play.why)
        _live(args, who, where, play.flags, _narrated(play))
        if not play.why:
            print(f"\n{stage.farewell(len(who.book.entries))}", flush=True)
    finally:
        play.close()
    return False


def _configure_log(config: sourced.Effective) -> None:
    log.configure(config.config.log.level, config.config.log.format)
    for warning in config.warnings:
        log.get().warning("config.warning", detail=warning)


def _live(
    args: argparse.Namespace,
    who: lifecycle.Agent,
    where: paths.Paths,
    flags: dict[str, object],
    shown: Callable[..., endpoints.Surfaces],
    *,
    start: bootstrap.Start | None = None,
) -> bool:
    """Run the agent until it is told to stop, or is to begin anew. Without ``start``: the demo."""
    config, host = who.line.effective, who.line.host
    sources = agent_sources.gatherer(config.config, host, where=where)
    store = None if sources is None else sources.store
    cluster = None
    if store is not None:
        cluster = endpoints.Cluster(store=store, by_default=who.enforce)
    child, told = _scheduler(args, config, host, where)
    life = loop.Daemon(
        who,
        config=reload.Configuring(
            who,
            reloader.Reloader(
                args.config,
                os.environ,
                flags,
                config,
                examiner.apart,
                error=None if start is None else start.refused,
            ),
            start=start,
            # What the demo is set to is nobody's configuration.
            keep=None if start is None else where.last_config,
        ),
        notifier=notify.Notifier(os.environ),
        surfaces=shown(
            config.config.report,
            where,
            past=who.line.history,
            cluster=cluster,
            scheduler=told,
        ),
        on_ready=_when_ready(demo_on=start is None),
        sources=sources,
        runtime=_runtime(who, config),
        child=child,
    )
    asyncio.run(life.run())
    if any(one.late() is not None for one in who.disks):
        # Everything is put back. What the kernel holds of us it gives up when the disk answers.
        sys.stdout.flush()
        os._exit(0)
    return life.again


def _narrated(play: stage.Stage) -> Callable[..., endpoints.Surfaces]:
    """Surfaces that tell the story, where there is one."""
    if play.why:
        return endpoints.Surfaces
    from koordlet.cli import narration  # noqa: PLC0415 -- a service tells no story

    return functools.partial(narration.Narrated, latency=play.latency)


def _runtime(who: lifecycle.Agent, config: sourced.Effective) -> loop.Runtime | None:
    alone = agent_sources.choose(config.config, who.line.host).standalone
    if not agent_sources.wants_runtime(config.config.nri, who.line.host, alone=alone):
        return None
    from koordlet.agent.nri import adapter  # noqa: PLC0415 -- without a runtime nobody needs it

    return adapter.Attending(who, config.config.nri, alone=alone)


def _scheduler(
    args: argparse.Namespace, config: sourced.Effective, host: root.HostRoot, where: paths.Paths
) -> tuple[loop.Child | None, str | None]:
    """The scheduler that is run beside the agent, and the address where it is told of this node."""
    if not config.config.scheduler.run:
        return None, None
    if not agent_sources.runs_scheduler(config.config, host):
        log.get().warning("scheduler.not_run", why="this machine belongs to a cluster")
        return None, None
    from koordlet.agent import scheduler_child  # noqa: PLC0415 -- most agents run none

    said = config.config.scheduler
    # -P: the directory that the agent was started in is no place for modules.
    words = [sys.executable, "-P", "-m", "koordlet", "scheduler", "--standalone"]
    words += ["--with-parent", str(os.getpid()), "--http", said.http]
    directory = args.state_dir or config.config.state.dir
    if directory is not None:
        words += ["--state-dir", directory]
    if said.config is not None:
        words += ["--config", said.config]
    return scheduler_child.Supervisor(words), f"unix:{where.scheduler_socket}"


def _flags(args: argparse.Namespace) -> dict[str, object]:
    flags = options.eviction_flags(args)
    if args.observe:
        flags["mode"] = sourced.Flag("observe", "--observe")
    if args.scheduler:
        flags["scheduler.run"] = sourced.Flag(value=True, spelling="--scheduler")
    if args.http is not None:
        flags["report.http.address"] = sourced.Flag(args.http, "--http")
    return flags


def _for_demo(args: argparse.Namespace, flags: dict[str, object]) -> dict[str, object]:
    """With a CPU to spare, one is reserved, so that there is something to see."""
    config = bootstrap.lasting(args, flags)
    reserved = config.config.policies.reserved_cpus
    more: dict[str, object] = {
        "policies.shared_pools.enableControllers": sourced.Flag(value=True, spelling="--demo")
    }
    if reserved.cpus is None and reserved.quantity is None and (os.cpu_count() or 1) > 1:
        more["policies.reserved_cpus.quantity"] = sourced.Flag("1", "--demo")
    return flags | more


def _when_ready(*, demo_on: bool) -> Callable[[view.ReportView, tuple[str, ...]], None]:
    """What the start left behind goes; what stays of it no later tick waits for.

    A person is greeted; a service's log is not for that.
    """

    def ready(now: view.ReportView, addresses: tuple[str, ...]) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        if demo_on or sys.stdout.isatty():
            from koordlet.cli import welcome  # noqa: PLC0415 -- a service greets nobody

            print("\n".join(welcome.lines(now, addresses, demo_on=demo_on)), flush=True)

    return ready
