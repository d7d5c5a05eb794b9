"""``koordlet replay``: what the policies would have done, moment by moment, on a recording.

Covers: playing the frames through the line, the same once more with other values (``--set``), the
table, the document, the picture.
Does not cover: the archive (``host.recording.player``), recording (``cli.record``).

The recorded machine is never changed, so each step's plan is what is missing from what was there;
what policies remember goes on from step to step, as in an agent.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from koordlet.agent import tick as ticks
from koordlet.cli import node_source, options, output
from koordlet.config import loader, sourced
from koordlet.history import series
from koordlet.host.recording import player
from koordlet.model import best_effort, meter, observed, plan
from koordlet.model.record import dataclass
from koordlet.report import documents, plan_json, replay_svg

EXAMPLES = """\
koordlet record busy.tar.gz --for 5m; koordlet replay busy.tar.gz
koordlet replay busy.tar.gz --set policies.cpu_suppress.cpuSuppressThresholdPercent=50
koordlet replay busy.tar.gz --pods pods.yaml --config new.yaml -o svg > busy.svg
koordlet replay busy.tar.gz -o json | jq '.steps[].plan.evictions'
"""
_CPU_MILLI = (
    "node latencySensitive=ls system bestEffort=be bestEffortLimit=limit"
    " bestEffortLimitAsConfigured=other"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One moment: its plan, and its point in the chart."""

    wall: float
    plan: plan.Plan
    point: replay_svg.Point


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("archive", metavar="ARCHIVE", help="a recording of 'koordlet record'")
    options.config(parser)
    options.changes(parser)
    options.output(parser, ("table", "json", "svg"))
    parser.add_argument("--pods", metavar="FILE", help="who runs there, as for 'koordlet plan'")
    options.cgroup_root(parser)


def run(args: argparse.Namespace) -> int:
    """Play it; with ``--set`` twice, and the limits of both runs are shown."""
    listed_pods = None if args.pods is None else node_source.listed(args.pods)
    changed = options.changed(args)
    steps, capacity = played(args, listed_pods, loader.load(args.config, os.environ, changed))
    if changed:
        before, _ = played(args, listed_pods, loader.load(args.config, os.environ, {}))
        steps = [
            replace(step, point=replace(step.point, other=old.point.limit))
            for step, old in zip(steps, before, strict=True)
        ]
    title, points = ", ".join(args.changes) or "as configured", [step.point for step in steps]
    return output.show(
        args.output,
        {"steps": [_document(step) for step in steps]},
        _table(steps, both=bool(changed)),
        lambda: replay_svg.render(points, capacity, title),
    )


def played(
    args: argparse.Namespace, listed_pods: observed.Observed | None, config: sourced.Effective
) -> tuple[list[Step], int]:
    """Every step under one configuration, and the capacity of the machine."""
    recording = player.Recording(args.archive)
    moments = recording.play()
    next(moments)
    tick = ticks.Tick(
        recording.host,
        config,
        base=args.cgroup_root,
        clock=recording.clock,
        take=lambda: listed_pods,
    )
    tick.usage.read_everything()
    steps: list[Step] = []
    capacity = 0
    try:
        while True:
            done = tick.draft({})
            seen = done.snapshot
            capacity = seen.cpu_capacity
            made = done.draft.plan
            now = recording.clock()
            point = _point(now.at, made.limit, tick.history)
            steps.append(Step(wall=now.wall, plan=made, point=point))
            if next(moments, None) is None:
                return steps, capacity
    finally:
        tick.usage.close()


def _point(at: float, limit: best_effort.Limit | None, past: series.History) -> replay_svg.Point:
    """Read the point of a step from the history; a missing counter is ``None``."""
    used = past.node.last("", meter.CPU)
    return replay_svg.Point(
        at=at,
        node=None if used is None else int(used * 1000),
        ls=None if limit is None else limit.ls_milli,
        system=None if limit is None else limit.system_milli,
        be=None if limit is None else limit.be_milli,
        limit=None if limit is None else limit.milli,
        cpu_wait=past.node.last("", meter.PRESSURE_CPU.some[0]),
        memory_wait=past.node.last("", meter.PRESSURE_MEMORY.some[0]),
    )


def _document(step: Step) -> dict[str, object]:
    return {
        "at": step.wall,
        "plan": plan_json.render(step.plan),
        "cpuMilli": documents.fields(step.point, _CPU_MILLI),
        "pressurePercent": documents.fields(step.point, "cpu=cpu_wait memory=memory_wait"),
    }


def _table(steps: list[Step], *, both: bool) -> list[str]:
    head = ["SECONDS", "NODE", "LS", "SYSTEM", "BE", "BE LIMIT"]
    head += [*(["AS CONFIGURED"] if both else []), "ACTIONS", "EVICTIONS", "WHY"]
    rows = []
    for step in steps:
        at = step.point
        row = [f"{at.at - steps[0].point.at:.1f}"]
        row += [output.cores(value, "?") for value in (at.node, at.ls, at.system, at.be)]
        row += [output.cores(at.limit, "none")]
        row += [output.cores(at.other, "none")] if both else []
        why = step.plan.limit.reason if step.plan.limit is not None else ""
        row += [str(len(step.plan.steps)), str(len(step.plan.evictions)), why]
        rows.append(row)
    return output.table(rows, head=head)
