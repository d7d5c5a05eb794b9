"""``koordlet restore``: put everything back that koordlet changed.

Covers: the options, the restore itself, what is printed.
Does not cover: waiting for a successor (``agent.handover_keeper``).
"""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path

from koordlet import log
from koordlet.agent import bootstrap, handover_keeper, lifecycle, restore
from koordlet.cli import options, output
from koordlet.config import loader, places, sourced
from koordlet.host import machine
from koordlet.model import errors
from koordlet.report import plan_json
from koordlet.state import handover, lock, ownfiles, paths

HELP = "put everything back that koordlet changed, as far as it still holds our values"
EXAMPLES = """\
koordlet restore                  put everything back now
koordlet restore --when-overdue   wait for a successor until the recorded deadline, then put back
"""


_WHEN = {
    "--when-overdue": "wait until the hand-over deadline; restore unless an agent became ready"
    " meanwhile",
    "--after-stop UNIT": "for ExecStopPost= of UNIT: restore after a final stop; if systemd brings"
    " UNIT back, record a hand-over deadline instead and start the unit that waits for it",
    "--after-wait UNIT": "for ExecStopPost= of the unit that waits: restore if UNIT was stopped for"
    " good",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.state(parser)
    options.output(parser, ("table", "json"))
    when = parser.add_mutually_exclusive_group()
    options.declare(when, _WHEN)


def run(args: argparse.Namespace) -> int:
    """Restore; exit 1 when any item could not be put back."""
    unit = args.after_stop or args.after_wait
    alone = unit is not None or args.when_overdue
    # Nobody meant a file that is not there; a mistake in one is no reason to leave limits in place.
    mistyped = args.config is not None and not os.access(args.config, os.F_OK)
    config = bootstrap.effective(args, {}) if mistyped and not alone else _usable(args)
    log.configure(config.config.log.level, config.config.log.format)
    if not alone:
        return _now(args, _Job(args, config))
    keeper = _keeper(args, config, unit or "", handover_keeper.world())
    seconds = config.config.state.handover_seconds
    if args.when_overdue:
        journal = bootstrap.state_paths(args, config).journal
        return _print(args, keeper.when_overdue(seconds, journal.exists))
    if args.after_wait is not None:
        return _print(args, keeper.after_wait())
    result = os.environ.get("SERVICE_RESULT", "success")
    return _print(args, keeper.after_stop(result, seconds))


def _now(args: argparse.Namespace, job: _Job) -> int:
    """Put everything back at once, for a person, who hears also of what nobody can put back."""
    status = _print(args, job(final=True))
    if job.without_journal:
        which = "nothing is to be put back, or --state-dir is another"
        output.say(f"no journal {job.where.journal}: {which}")
    if job.aside is None:
        return status
    raise errors.HostError(
        "was not readable as a journal: what it held is not put back",
        culprit=str(job.aside),
        fix="compare the cgroup files with your own, or reboot: they start anew",
    )


def after_failed_start(args: argparse.Namespace) -> None:
    """``koordlet run`` failed where a successor is expected: perhaps nobody else waits."""
    config = _usable(args, quiet=True)
    where = bootstrap.state_paths(args, config)
    if os.geteuid() != 0 or config.config.state.on_stop != "handover" or not where.journal.exists():
        return
    keeper = _keeper(args, config, "", handover_keeper.World(pause=lambda _: True))
    try:
        done = keeper.after_failed_start(config.config.state.handover_seconds)
    except (errors.KoordletError, OSError) as error:
        done = str(error)  # why the start failed is told by the caller, and matters more
    message = (
        done if isinstance(done, str) else f"restored {done.restored}: the deadline has passed"
    )
    output.say(message)


def _keeper(
    args: argparse.Namespace, config: sourced.Effective, unit: str, world: handover_keeper.World
) -> handover_keeper.HandoverKeeper:
    job = _Job(args, config)
    return handover_keeper.HandoverKeeper(
        unit=unit, lock=lock.Lock(job.where.lock), deadline=job.deadline, restore=job, world=world
    )


def _usable(args: argparse.Namespace, *, quiet: bool = False) -> sourced.Effective:
    """The configuration; the next best one where the operator's cannot be used."""
    try:
        return bootstrap.effective(args, {})
    except errors.ConfigError as error:
        refused = error
    config, without = _next_best(args)
    if not quiet:
        output.print_error(refused, as_json=False)
        output.say(f"going on without {without}")
    return config


def _next_best(args: argparse.Namespace) -> tuple[sourced.Effective, str]:
    """The last good configuration, the file alone, or the built-in values; what is left out."""
    with contextlib.suppress(errors.ConfigError):
        return bootstrap.start(args, {}).config, "the configuration file"
    with contextlib.suppress(errors.ConfigError):
        return loader.load(args.config, {}, {}), "the variables KOORDLET_*"
    built_in = loader.from_text(None, places.DEFAULT_PATH, {}, {})
    return built_in, "the configuration file and the variables KOORDLET_*"


class _Job:
    """Run one restore at each call."""

    def __init__(self, args: argparse.Namespace, config: sourced.Effective) -> None:
        self.args = args
        self.config = config
        self.where = bootstrap.state_paths(args, config)
        self.host = bootstrap.host(args)
        if not self.host.live:
            raise errors.UsageError(
                "restore works on the live machine only", fix="unset KOORDLET_ROOT"
            )
        boot_id = machine.identify(self.host).boot_id
        self.deadline = handover.Handover(self.where.handover, boot_id)
        self.without_journal = False
        #: Where a journal is kept that could not be read.
        self.aside: Path | None = None

    def __call__(self, *, final: bool) -> restore.Summary:
        """Put everything back: files, then what the cluster was told."""
        return self._files(final=final) + restore.withdraw(self.config.config, self.host)

    def _files(self, *, final: bool) -> restore.Summary:
        if os.geteuid() != 0:
            self._must_be_root()
        if not self.where.journal.exists():
            try:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    ownfiles.directory(self.where.lib, make=False)
                    self.deadline.clear()
            except OSError as error:
                culprit, fix = self.deadline.path, "run it as the user that the agent runs as"
                what = "cannot be removed"
                raise ownfiles.explained(error, what, culprit=culprit, fix=fix) from error
            self.without_journal = True
            return restore.NOTHING
        line = bootstrap.open_tick(self.args, self.host, self.config)
        who = lifecycle.Agent(line, self.where, enforce=True)
        try:
            return who.restore(final=final)
        finally:
            self.aside = who.book.aside
            who.close()

    def _must_be_root(self) -> None:
        """Without root nothing can be put back: say so where anything may be left.

        Root's agent keeps its journal elsewhere than a user's, so that is looked at as well:
        whoever forgot ``sudo`` must not hear that there was nothing to do.
        """
        chosen = self.args.state_dir or self.config.config.state.dir
        roots = paths.choose(os.environ, root=True, state_dir=chosen)
        for journal in (self.where.journal, roots.journal):
            try:
                journal.stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                pass  # somebody else's, so it may be there
            raise errors.HostError(
                "may hold what is to be put back, and only root can do that",
                culprit=str(journal),
                fix="run it as root",
            )


def _print(args: argparse.Namespace, done: restore.Summary | str) -> int:
    if isinstance(done, str):
        document = {"restored": 0, "left": [], "failed": [], "why": done}
        return output.show(args.output, document, [done])
    document = {
        "restored": done.restored,
        "left": [plan_json.outcome(result) for result in done.left],
        "failed": [plan_json.outcome(result) for result in done.failed],
    }
    lines = [f"restored {done.restored}, left {len(done.left)}, failed {len(done.failed)}"]
    lines += [f"  {r.verdict.value} {r.target}: {r.detail}" for r in (*done.left, *done.failed)]
    output.show(args.output, document, lines)
    return 1 if done.failed else 0
