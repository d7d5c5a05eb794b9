"""``koordlet restore``: put everything back that koordlet changed.

Covers: the options, the restore itself, what is printed.
Does not cover: waiting for a successor (``waiting``).
"""

from __future__ import annotations

import argparse
import os
import sys

from koordlet import agent, log, opening, restoring, waiting
from koordlet.cli import options, output
from koordlet.config import loader
from koordlet.host import machine, root
from koordlet.model import errors
from koordlet.report import plan_json
from koordlet.state import handover, lock, paths

NAME = "restore"
HELP = "put everything back that koordlet changed, as far as it still holds our values"
EXAMPLES = """\
koordlet restore                  put everything back now
koordlet restore --when-overdue   wait for a successor until the recorded deadline, then put back
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.state(parser)
    options.output(parser, ("table", "json"))
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--when-overdue",
        metavar="UNIT",
        nargs="?",
        const="",
        help="wait until the hand-over deadline; restore unless an agent became ready meanwhile."
        " Told to stop, restore at once if UNIT is stopped for good",
    )
    when.add_argument(
        "--after-stop",
        metavar="UNIT",
        help="for ExecStopPost= of UNIT: restore after a final stop; if systemd brings UNIT back,"
        " record a hand-over deadline instead and start the unit that waits for it",
    )


def run(args: argparse.Namespace) -> int:
    """Restore; exit 1 when any item could not be put back."""
    alone = args.after_stop is not None or args.when_overdue is not None
    config = _unattended(args) if alone else opening.effective(args, {})
    log.configure(config.config.log.level, config.config.log.format)
    where = opening.state_paths(args, config)
    host = opening.host(args)
    deadline = handover.Handover(where.handover, machine.identify(host).boot_id)

    def restore(*, final: bool = True) -> restoring.Summary:
        return _restore(args, host, config, where, deadline, final=final)

    if not alone:
        return _print(args, restore())
    keeper = waiting.Keeper(
        unit=args.after_stop or args.when_overdue or "",
        lock=lock.Lock(where.lock),
        deadline=deadline,
        restore=restore,
        world=waiting.world(),
    )
    if args.after_stop is None:
        return _print(args, keeper.when_overdue())
    result = os.environ.get("SERVICE_RESULT", "success")
    return _print(args, keeper.after_stop(result, config.config.state.handover_seconds))


def _unattended(args: argparse.Namespace) -> loader.Effective:
    """The configuration; the built-in one where the operator's is what the agent died of."""
    try:
        return opening.effective(args, {})
    except errors.ConfigError as error:
        sys.stderr.write(f"koordlet: going on without the configuration file: {error}\n")
    try:
        return loader.from_text(None, loader.DEFAULT_PATH, os.environ, {})
    except errors.ConfigError:
        return loader.from_text(None, loader.DEFAULT_PATH, {}, {})


def _restore(
    args: argparse.Namespace,
    host: root.HostRoot,
    config: loader.Effective,
    where: paths.Paths,
    deadline: handover.Handover,
    *,
    final: bool,
) -> restoring.Summary:
    if os.geteuid() != 0 and where.journal.exists():
        raise errors.HostError(
            "restoring needs root", culprit=str(where.journal), fix="run it as root"
        )
    if not where.journal.exists():
        deadline.clear()
        return restoring.Summary(restored=0, left=(), failed=())
    who = agent.Agent(opening.open_line(args, host, config), where, enforce=True)
    try:
        return who.restore(final=final)
    finally:
        who.close()


def _print(args: argparse.Namespace, done: restoring.Summary | str) -> int:
    if isinstance(done, str):
        if args.output == "json":
            output.print_json({"restored": 0, "left": [], "failed": [], "why": done})
        else:
            print(output.visible(done))
        return 0
    if args.output == "json":
        output.print_json(
            {
                "restored": done.restored,
                "left": [plan_json.outcome(one) for one in done.left],
                "failed": [plan_json.outcome(one) for one in done.failed],
            }
        )
    else:
        print(f"restored {done.restored}, left {len(done.left)}, failed {len(done.failed)}")
        for one in (*done.left, *done.failed):
            print(
                f"  {one.verdict.value} {output.visible(one.target)}: {output.visible(one.detail)}"
            )
    return 1 if done.failed else 0
