"""``python -m tests.bench.colocation``: what best-effort work costs the service beside it.

Covers: arms in random order, round by round; the table, the plot, the gate, exit codes.

A report takes some three minutes for each load, the gate some five in all. It needs root and a
machine on which nothing else runs. The gate's exit status: 1 where ours fails at a load,
75 (``EX_TEMPFAIL``) where rounds are too far apart to say.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from koordlet.demo import intervals
from tests.bench.colocation import arms, block, plot, settings, verdict

#: Of the gate: rounds until the first look, and seconds that one load may take.
_FIRST_LOOK, _LONGEST = 4, 100.0
#: The load at which a fair service's threads crowd, and who shall not feel it.
_CROWDED, _GOAL = "20%", ("alone", "koordlet-rr")
_SeenT = TypeVar("_SeenT")


class Run:
    """Blocks of some arms at one load."""

    def __init__(self, bench: arms.Bench, names: Sequence[str], load: block.Load) -> None:
        self.bench, self.names, self.load = bench, names, load
        self.void = 0
        self.blocks: dict[str, list[intervals.Block]] = {name: [] for name in names}

    def round(self) -> None:
        """One block of each arm, in random order."""
        seed = len(self.blocks[self.names[0]])
        for name in random.Random(seed).sample(self.names, len(self.names)):
            arm = arms.ARMS[name]
            done = block.run(self.bench, arm, self.load, seed)
            while done.others > settings.OTHERS and self.void < settings.VOID:
                self.void += 1
                done = block.run(self.bench, arm, self.load, seed)
            if not done.clean:
                print("every request met a gap: the host gives no processor for long enough")
                sys.exit(os.EX_TEMPFAIL)
            self.blocks[name].append(done)

    def rows(self) -> plot.Arms:
        """Arm to p99 as times alone, and best-effort work's part of the CPU that is left."""
        base = self.blocks[self.names[0]]
        return {
            name: (intervals.latency(done, base), intervals.share(done))
            for name, done in self.blocks.items()
        }

    def ratios(self, ours: str, others: Sequence[str]) -> tuple[str, list[intervals.Interval]]:
        """Ours by the better of the others: p99, and best-effort work the other way round."""
        best = verdict.better(self.blocks, others)
        mine, theirs = self.blocks[ours], self.blocks[best]
        less = verdict.inverse(intervals.work(mine, theirs))
        return best, [intervals.latency(mine, theirs), less]


def _load(level: str, hog: str, seconds: float, names: Sequence[str]) -> block.Load:
    noticed = any(arms.ARMS[name].asks for name in names)
    settle = settings.NOTICE if noticed else settings.SETTLE
    return block.Load(settings.LEVELS[level], hog, seconds, settle)


def report(bench: arms.Bench, args: argparse.Namespace) -> int:
    """Every load that was asked for."""
    shown: dict[str, plot.Arms] = {}
    print("| load | best-effort work | arm | p99, times alone | part of the CPU left | rounds |")
    print("|---|---|---|---|---|---|")
    for level in args.levels:
        for hog in args.hogs:
            run = Run(bench, args.arms, _load(level, hog, args.seconds, args.arms))
            for _ in range(args.rounds):
                run.round()
            shown[f"{level}, {hog}"] = rows = run.rows()
            for name, (latency, share) in rows.items():
                work = sum(done.work for done in run.blocks[name]) / args.rounds
                print(f"| {level} | {hog} | {name} | {latency} | {share} | {work:.0f} |")
            kept = sum(len(done.clean) for some in run.blocks.values() for done in some)
            every = sum(done.requests for some in run.blocks.values() for done in some)
            met = f"{kept / every:.1%} of requests met no gap, {run.void} blocks were void"
            print(f"{level}, {hog}: {met}", file=sys.stderr)
            sys.stdout.flush()
    if args.plot:
        args.plot.write_text(plot.svg(shown, "Service and best-effort work, by load and arm"))
    return 0


def gate(bench: arms.Bench, args: argparse.Namespace) -> int:
    """Rounds until a load is decided, or its time is up."""
    judges = [functools.partial(_beside_files, bench, args.seconds, level) for level in args.levels]
    judges.append(functools.partial(_beside_nobody, bench, args.seconds))
    verdicts = set()
    for judge in judges:
        judged = judge()
        # As of the other gates, one run over the limit is not believed alone.
        verdicts.add(judge() if judged is verdict.Verdict.FAILS else judged)
    if verdict.Verdict.FAILS in verdicts:
        return 1
    return os.EX_TEMPFAIL if verdict.Verdict.OPEN in verdicts else 0


def _beside_files(bench: arms.Bench, seconds: float, level: str) -> verdict.Verdict:
    names = (*arms.FILES, "koordlet")
    run = Run(bench, names, _load(level, "cpu", seconds, names))
    judged, (best, ratios) = _decided(run, _by_files, lambda seen: verdict.verdict(seen[1]))
    print(
        f"{judged.value} co-location at {level}: p99 {ratios[0]} x {best}, its best-effort"
        f" work {ratios[1]} x ours (limit {verdict.LIMIT} at the lower end)",
        flush=True,
    )
    return judged


def _beside_nobody(bench: arms.Bench, seconds: float) -> verdict.Verdict:
    run = Run(bench, _GOAL, _load(_CROWDED, "cpu", seconds, _GOAL))
    judged, (latency, part) = _decided(run, _by_alone, lambda seen: verdict.goal(*seen))
    print(
        f"{judged.value} co-location at {_CROWDED}, a service that asks for real time: p99"
        f" {latency} x alone (goal {verdict.GOAL}), best-effort work {part} of the CPU left"
        f" (goal {verdict.GOAL_PART})",
        flush=True,
    )
    return judged


def _by_files(run: Run) -> tuple[str, list[intervals.Interval]]:
    return run.ratios("koordlet", arms.FILES)


def _by_alone(run: Run) -> tuple[intervals.Interval, intervals.Interval]:
    return run.rows()[_GOAL[1]]


def _decided(
    run: Run, look: Callable[[Run], _SeenT], judge: Callable[[_SeenT], verdict.Verdict]
) -> tuple[verdict.Verdict, _SeenT]:
    """Rounds until the verdict is not open any more, or time is up."""
    ends = time.monotonic() + _LONGEST
    for _ in range(_FIRST_LOOK):
        run.round()
    while (judged := judge(seen := look(run))) is verdict.Verdict.OPEN:
        if time.monotonic() > ends:
            break
        run.round()
    return judged, seen


def main() -> int:
    """Choose."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.colocation", description=__doc__)
    parser.add_argument("--gate", action="store_true", help="koordlet by the better of two files")
    parser.add_argument("--plot", type=Path, help="where the picture goes")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=settings.SECONDS, help="of a block")
    parser.add_argument("--warm-up", type=float, default=settings.WARM_UP, help="seconds")
    parser.add_argument("--levels", type=_names(settings.LEVELS), help=_listed(settings.LEVELS))
    parser.add_argument(
        "--hogs", type=_names(settings.HOGS), default=["cpu"], help=_listed(settings.HOGS)
    )
    parser.add_argument("--arms", type=_names(arms.ARMS), help=_listed(arms.ARMS))
    args = parser.parse_args()
    args.levels = args.levels or list(settings.GATE if args.gate else settings.REPORT)
    args.arms = args.arms or ["alone", *arms.FILES, "koordlet"]
    # Whoever ends it wants no hogs and groups left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bench = arms.Bench()
    try:
        bench.open([*arms.FILES, "koordlet", *_GOAL] if args.gate else args.arms)
        _warm_up(bench, args)
        return (gate if args.gate else report)(bench, args)
    finally:
        bench.close()


def _warm_up(bench: arms.Bench, args: argparse.Namespace) -> None:
    """Each agent beside load and best-effort work, before anything counts."""
    for name in ("koordlet", _GOAL[1]) if args.gate else args.arms:
        arm = arms.ARMS[name]
        if arm.policies is not None and arm.hogs:
            block.run(bench, arm, block.Load(settings.LEVELS["45%"], "cpu", args.warm_up), 0)


def _listed(names: Collection[str]) -> str:
    # ``argparse`` fills in what stands after a per cent sign.
    return ", ".join(names).replace("%", "%%")


def _names(table: Collection[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in table]:
            msg = f"no {', '.join(unknown)}; there are: {', '.join(table)}"
            raise argparse.ArgumentTypeError(msg)
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main())
