"""``koordlet trace``: one pass, station by station; nothing is written.

Covers: the pass on this machine or on a recording.
Does not cover: what the stations tell (``apply.trace``), the document (``report.trace_json``), the
table (``cli.trace_table``).

On this machine the pass goes on from the journal and the checkpoints of the agent that ran here
last, as the next start of an agent would. A recorded machine has neither. Every read goes through
``read_log.ReadLog``, which refuses to write.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from koordlet.agent import bootstrap, publisher
from koordlet.agent import tick as ticks
from koordlet.apply import trace
from koordlet.cli import explain_write, options, output, record, trace_table
from koordlet.cli import plan as plan_command
from koordlet.config import sourced
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import player, read_log
from koordlet.model import cgroup, errors, result
from koordlet.report import audit_json, documents, trace_json
from koordlet.state import journal

EXAMPLES = """\
koordlet trace                                  one pass here: read, decided, compared, ordered
koordlet trace --policy cpu_suppress            what one policy saw, wants, and why
koordlet trace --group /kubepods/besteffort     who wants what in a cgroup and those inside
koordlet trace --root node7.tar.gz              the last moment of a recording
koordlet trace --root node7.tar.gz --after 30s  the moment half a minute after its beginning
koordlet trace --set policies.resctrl.mode=enforce  the same pass, were a policy not in shadow
koordlet trace -o json | jq '.written.why'      for programs
"""

_BAD = frozenset(verdict.value for verdict in result.BAD)
_OPTIONS = {
    "--policy STEM": "this policy only, with what it saw: its settings, its state, the claims"
    " before it",
    "--group PATH": "this cgroup and those inside only: /kubepods/burstable, or the path of its"
    " directory",
    "--after D": "the pass so long after the first: the passes before it, one each second, give"
    " rates (default: 1s; of a recording its last moment)",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.declare(parser, _OPTIONS, after={"type": record.duration})
    options.config(parser)
    options.changes(parser)
    options.root(parser)
    options.output(parser, ("table", "json"))
    parser.add_argument("--pods", metavar="FILE", help="who runs there, as for 'koordlet plan'")
    options.state(parser)


def run(args: argparse.Namespace) -> int:
    """Trace one pass, and print it."""
    config = bootstrap.effective(args, options.changed(args))
    traced = look(args, config)
    choice = _choice(args, traced)
    document = trace_json.document(traced, choice)
    table = trace_table.lines(document, detailed=choice != trace_json.ALL)
    return output.show(args.output, document, table)


def _choice(args: argparse.Namespace, traced: trace_json.Traced) -> trace_json.Choice:
    """What is shown; a policy or group that is not there is a usage error."""
    stems = [row.stem for row in traced.rows]
    if args.policy is not None and args.policy not in stems:
        raise errors.UsageError(
            "no policy has this stem",
            culprit=f"--policy {args.policy}",
            fix=errors.suggest(args.policy, stems, "one of"),
        )
    if args.group is None:
        return trace_json.Choice(policy=args.policy)
    seen = traced.snapshot
    group = trace_json.group_of(seen.layout, args.group)
    if group not in seen.groups and not any(cgroup.is_below(path, group) for path in seen.groups):
        known = ", ".join(f"/{pod.group}" for pod in seen.pods[:5] if pod.group is not None)
        raise errors.UsageError(
            "this pass read no such cgroup",
            culprit=f"--group {args.group}",
            fix=f"workloads are in: {known}" if known else "no workload here has a cgroup",
        )
    return trace_json.Choice(policy=args.policy, group=group)


# The pass -----------------------------------------------------------------------------------------


def look(args: argparse.Namespace, config: sourced.Effective) -> trace_json.Traced:
    """Pass as often as ``--after`` says, and keep the last pass."""
    host, moments, clock = _open(args)
    next(moments)
    log = read_log.ReadLog(host)
    told = functools.cache(lambda: plan_command.ask_sources(args, config, host))
    tick = bootstrap.open_tick(args, log, config, clock=clock, take=told)
    observed = config.config.mode == "observe"
    observes = f"mode is observe ({config.origin('mode')})" if observed else ""
    if host.live:
        observes = bootstrap.why_observe(config, tick.observer.layout)
    try:
        plan_command.hold_claims(args, tick)
        entries = _recall(args, tick) if host.live else {}
        made, stations = _one_pass(tick, entries, acting=not observes)
        for _ in moments:
            made, stations = _one_pass(tick, entries, acting=not observes)
        return traced_pass(
            tick,
            made,
            stations,
            answers=dict(log.answers),
            journaled=len(entries) if host.live else None,
            failed=_failed(args, tick) if host.live else {},
            observes=observes,
        )
    finally:
        tick.observation.close()


def _one_pass(
    tick: ticks.Tick, entries: Mapping[str, journal.Entry], *, acting: bool
) -> tuple[publisher.Pass, trace.Trace]:
    tick.observation.prepare_single_pass()
    stations = trace.Trace()
    return tick.draft(entries, acting=acting, trace=stations), stations


def traced_pass(
    tick: ticks.Tick,
    made: publisher.Pass,
    stations: trace.Trace,
    *,
    answers: Mapping[str, int],
    journaled: int | None = None,
    failed: Mapping[str, str] = MappingProxyType({}),
    observes: str = "",
) -> trace_json.Traced:
    """A pass of a line with its trace."""
    return trace_json.Traced(
        snapshot=made.snapshot,
        round=made.round,
        draft=made.draft,
        trace=stations,
        rows=tick.rows,
        modes=tick.modes,
        origins={r.stem: tick.effective.origin(f"policies.{r.stem}.mode") for r in tick.rows},
        answers=answers,
        journaled=journaled,
        failed=failed,
        live=tick.host.live,
        observes=observes,
    )


def _open(
    args: argparse.Namespace,
) -> tuple[root.HostRoot, Iterator[object], Callable[[], machine.Now] | None]:
    """The machine, its moments until the pass that is told, and its clock where it has one."""
    if args.root and Path(args.root).is_file():
        recording = player.Recording(args.root)
        if recording.has_frames:
            return recording.host, _frames(recording, args.after), recording.clock
        return recording.host, iter((None,)), None
    host = bootstrap.host(args)
    return host, _seconds(1.0 if args.after is None else args.after, live=host.live), None


def _frames(recording: player.Recording, after: float | None) -> Iterator[object]:
    start = None
    for now in recording.play():
        start = now.at if start is None else start
        if after is not None and now.at - start > after:
            return
        yield now


def _seconds(after: float, *, live: bool) -> Iterator[object]:
    """A pass each second; a machine that does not change is looked at once."""
    yield None
    end = time.monotonic() + after
    while live and (left := end - time.monotonic()) > 0:
        time.sleep(min(1.0, left))
        yield None


def _recall(args: argparse.Namespace, tick: ticks.Tick) -> dict[str, journal.Entry]:
    """What the agent that ran here last left: states of policies, and the files that it changed."""
    where = bootstrap.state_paths(args, tick.effective)
    kept = plan_command.checkpoints(args, tick)
    for row in tick.rows:
        if kept is not None and row.kept is not None:
            state, problem = kept.revive(row.stem, row.schema, row.revive)
            output.warn([problem] if problem else [])
            if state is not None:
                tick.states[row.stem] = state
    return explain_write.remembered(where.journal, tick.observer.identity)


def _failed(args: argparse.Namespace, tick: ticks.Tick) -> dict[str, str]:
    where = bootstrap.state_paths(args, tick.effective).audit
    try:
        return failed_last(where)
    except OSError as error:
        raise bootstrap.unreadable(where, error) from error


def failed_last(audit: Path) -> dict[str, str]:
    """Of each target that an agent failed to bring about when it tried last: what went wrong."""
    question = audit_json.AuditQuery(limit=audit_json.MAX_LINES)
    latest: dict[str, documents.Document] = {}
    for row in documents.rows(audit_json.document(audit, question), "records"):
        latest.setdefault(str(row.get("target")), row)
    return {
        target: f"{row.get('verdict')}: {row.get('detail')}"
        for target, row in latest.items()
        if row.get("verdict") in _BAD
    }
