"""``koordlet run``: the agent, in the foreground, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import errno
import functools
import gc
import os
import sys
import typing
from collections.abc import Callable

from koordlet import log
from koordlet.agent import bootstrap, endpoints, lifecycle, loop, reload, stop_signal
from koordlet.agent import sources as agent_sources
from koordlet.cli import options, output
from koordlet.config import examiner, reloader, sourced
from koordlet.host.process import code_pages
from koordlet.host.systemd import notify
from koordlet.model import errors
from koordlet.report import view

if typing.TYPE_CHECKING:
    from koordlet.agent import scheduler_child
    from koordlet.host.fs import root
    from koordlet.state import paths

HELP = "run the agent on this machine until it is told to stop; stopping puts everything back"
EXAMPLES = """\
koordlet run                              with /etc/koordlet/config.yaml
koordlet run --observe                    decide and show everything, change nothing
koordlet run --demo                       with work to look at; not as root, on a recorded machine
koordlet run --scheduler                  with a scheduler of its own, for `reserve` and `schedule`
koordlet run --config node.yaml --state-dir /var/lib/koordlet-test
"""
_OPTIONS = {
    "--observe": "do everything but act (also without root)",
    "--demo": "start a latency-sensitive service and a best-effort hog to look at; without root,"
    " play the same on a recorded machine, in memory",
    "--scheduler": "run a standalone scheduler beside it, as its child (scheduler.run)",
    "--http ADDRESS:PORT": "where the HTTP server listens (report.http.address)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.state(parser)
    options.eviction(parser)
    options.declare(parser, _OPTIONS)


def run(args: argparse.Namespace) -> int:
    """Open, run, close. Exit 0 after SIGTERM or Ctrl-C."""
    try:
        while _run(args):
            stop_signal.listen()
    except errors.TakenError:
        raise  # the running agent looks after its limits
    except Exception as error:
        if isinstance(error, errors.HostError) and error.errno == errno.ETIMEDOUT:
            raise  # a restore would wait for the same disk
        from koordlet.cli import restore  # noqa: PLC0415 -- only for a start that fails

        restore.after_failed_start(args)
        raise
    return 0


def _run(args: argparse.Namespace) -> bool:
    """Run the agent once; ``True`` where it is to start again, with a configuration at last."""
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
        output.print_error(start.refused, as_json=False)
        output.say(f"in force: {start.instead}")
    where = bootstrap.state_paths(args, config)
    sources = agent_sources.gatherer(config.config, host, where=where)
    take = None if sources is None else sources.take
    tick = bootstrap.open_tick(args, host, config, take=take)
    why = bootstrap.why_observe(config, tick.observer.layout)
    if why:
        output.say(f"observing only, changing nothing: {why}")
    wired = bootstrap.wire(config, host, sources)
    agent = lifecycle.Agent(tick, where, enforce=not why, wired=wired)
    return _live(args, agent, where, flags, endpoints.Endpoints, start=start)


def _play(args: argparse.Namespace, host: root.HostRoot, flags: dict[str, object]) -> bool:
    """Run the agent with the demo's workloads, on the stage that this machine allows."""
    from koordlet.cli import narration  # noqa: PLC0415 -- a service plays no demo
    from koordlet.demo import stage  # noqa: PLC0415 -- a service plays no demo

    play = stage.choose(args, host, flags)
    try:
        _configure_log(play.config)
        where = play.paths(bootstrap.state_paths(args, play.config))
        wired = bootstrap.wire(play.config, play.tick.host, play.sources)
        agent = lifecycle.Agent(play.tick, where, enforce=not play.why, wired=wired)
        if play.why:
            anywhere = functools.partial(endpoints.Endpoints, any_port=True)
            _live(args, agent, where, play.flags, anywhere)
        else:
            comparing = narration.Comparing(play)
            narrated = functools.partial(
                narration.Narrated, play=play, comparing=comparing, any_port=True
            )
            _live(args, agent, where, play.flags, narrated)
            if not comparing.over:
                print("", *comparing.summary(), sep="\n")
            print(f"\n{stage.farewell(len(agent.book.entries))}", flush=True)
    finally:
        play.close()
    return False


def _configure_log(config: sourced.Effective) -> None:
    log.configure(config.config.log.level, config.config.log.format)
    for warning in config.warnings:
        log.get().warning("config.warning", detail=warning)


def _live(
    args: argparse.Namespace,
    agent: lifecycle.Agent,
    where: paths.Paths,
    flags: dict[str, object],
    make_endpoints: Callable[..., endpoints.Endpoints],
    *,
    start: bootstrap.Start | None = None,
) -> bool:
    """Run the agent until it is told to stop, or to start again. Without ``start``: the demo."""
    config, host, sources = agent.tick.effective, agent.tick.host, agent.sources
    cluster = None
    if sources is not None and sources.store is not None:
        cluster = endpoints.Cluster(store=sources.store, by_default=agent.enforce)
    child, scheduler = _scheduler(args, config, host, where)
    life = loop.Loop(
        agent,
        config=reload.LiveConfig(
            agent,
            reloader.Reloader(
                args.config,
                os.environ,
                flags,
                config,
                examiner.apart,
                error=None if start is None else start.refused,
            ),
            start=start,
            # The demo's settings are not kept for the next start.
            keep=None if start is None else where,
        ),
        notifier=notify.Notifier(os.environ),
        endpoints=make_endpoints(
            config.config.report,
            where,
            past=agent.tick.history,
            cluster=cluster,
            scheduler=scheduler,
        ),
        on_ready=_when_ready(demo_on=start is None),
        child=child,
    )
    asyncio.run(life.run())
    if any(disk.late() is not None for disk in agent.disks):
        # Everything is put back. The kernel ends a thread in a read when the disk answers.
        sys.stdout.flush()
        os._exit(0)
    return life.again


def _scheduler(
    args: argparse.Namespace, config: sourced.Effective, host: root.HostRoot, where: paths.Paths
) -> tuple[scheduler_child.SchedulerChild | None, str | None]:
    """Choose the scheduler that runs beside the agent, and the address for reports to it."""
    if not config.config.scheduler.run:
        return None, None
    if not agent_sources.runs_scheduler(config.config, host):
        log.get().warning("scheduler.not_run", why="this machine belongs to a cluster")
        return None, None
    from koordlet.agent import scheduler_child as child  # noqa: PLC0415 -- most agents run none

    settings = config.config.scheduler
    # -P: no modules from the directory that the agent was started in.
    words = [sys.executable, "-P", "-m", "koordlet", "scheduler", "--standalone"]
    words += ["--with-parent", str(os.getpid()), "--http", settings.http]
    directory = args.state_dir or config.config.state.dir
    if directory is not None:
        words += ["--state-dir", directory]
    if settings.config is not None:
        words += ["--config", settings.config]
    return child.SchedulerChild(words), f"unix:{where.scheduler_socket}"


def _flags(args: argparse.Namespace) -> dict[str, object]:
    flags = options.eviction_flags(args)
    if args.observe:
        flags["mode"] = sourced.Flag("observe", "--observe")
    if args.scheduler:
        flags["scheduler.run"] = sourced.Flag(value=True, spelling="--scheduler")
    if args.http is not None:
        flags["report.http.address"] = sourced.Flag(args.http, "--http")
    return flags


def _when_ready(*, demo_on: bool) -> Callable[[view.ReportView, tuple[str, ...]], None]:
    """Hand back what only the start needed, keep the rest from the collector, greet a person."""

    def ready(now: view.ReportView, addresses: tuple[str, ...]) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        code_pages.release()
        if demo_on or sys.stdout.isatty():
            from koordlet.cli import welcome  # noqa: PLC0415 -- a service greets no person

            print("\n".join(welcome.lines(now, addresses, demo_on=demo_on)), flush=True)

    return ready
