"""``koordlet restore``: put everything back that koordlet changed."""

from __future__ import annotations

import argparse
import os
import time

from koordlet import agent, log, opening, restoring
from koordlet.cli import options, output
from koordlet.host import machine
from koordlet.model import errors
from koordlet.report import plan_json
from koordlet.state import handover

NAME = "restore"
HELP = "put everything back that koordlet changed, as far as it still holds our values"
EXAMPLES = """\
koordlet restore                  put everything back now
koordlet restore --when-overdue   wait for a successor until the recorded deadline, then put back
"""

#: How often a waiting restore looks whether a successor has come.
_LOOK_SECONDS = 1.0


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.state(parser)
    options.output(parser, ("table", "json"))
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--when-overdue",
        action="store_true",
        help="wait until the hand-over deadline; restore unless an agent became ready meanwhile",
    )
    when.add_argument(
        "--expect-successor",
        action="store_true",
        help="record a hand-over deadline, if there is none, and leave everything in place",
    )


def run(args: argparse.Namespace) -> int:
    """Restore; exit 1 when any item could not be put back."""
    config = opening.effective(args, {})
    log.configure(config.config.log.level, config.config.log.format)
    where = opening.state_paths(args, config)
    host = opening.host(args)
    boot_id = machine.identify(host).boot_id
    deadline = handover.Handover(where.handover, boot_id)
    if args.expect_successor:
        recorded = deadline.record(machine.boottime() + config.config.state.handover_seconds)
        print(f"limits stay for {max(0.0, recorded.boottime - machine.boottime()):.0f} s")
        return 0
    if args.when_overdue and not _overdue(deadline):
        print("an agent has taken over: nothing to restore")
        return 0
    if os.geteuid() != 0 and where.journal.exists():
        raise errors.HostError(
            "restoring needs root", culprit=str(where.journal), fix="run it as root"
        )
    if not where.journal.exists():
        deadline.clear()
        return _print(args, restoring.Summary(restored=0, left=(), failed=()))
    who = agent.Agent(opening.open_line(args, host, config), where, enforce=True)
    try:
        done = who.restore()
    finally:
        who.close()
    return _print(args, done)


def _overdue(deadline: handover.Handover) -> bool:
    """Wait for the deadline; ``False`` as soon as a ready agent has cleared it."""
    while (recorded := deadline.read()) is not None:
        left = recorded.boottime - machine.boottime()
        if left <= 0:
            return True
        time.sleep(min(left, _LOOK_SECONDS))
    return False


def _print(args: argparse.Namespace, done: restoring.Summary) -> int:
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
