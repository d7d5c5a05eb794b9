"""``python -m tests.bench.colocation``: a report; with ``--gate`` the check of one load level.

Covers: ABBA order with an LS-alone block beside each block, the table, the plot, exit codes.

A report takes about seven minutes at its usual size, the gate under four. It needs root and cgroup
v1; on v2 the effect is unmeasured.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.colocation import arms, intervals, plot, settings


def measured(
    bench: arms.Bench,
    who: Sequence[arms.Arm],
    level: settings.Level,
    seeds: Sequence[int],
    *,
    rounds: int,
    seconds: float,
) -> dict[str, list[intervals.Pair]]:
    """Each arm's pairs; arms forth and back, so that a drift meets all alike."""
    found: dict[str, list[intervals.Pair]] = {one.name: [] for one in who}
    order = [one for turn in range(rounds) for one in (who if turn % 2 == 0 else who[::-1])]
    for number, arm in enumerate(order):
        seed = seeds[number // len(who)]
        alone = bench.block(arms.ALONE, level, seed, seconds)
        block = bench.block(arm, level, seed, seconds)
        found[arm.name].append(intervals.Pair(alone, block))
        print(
            f"{level.name:16} {arm.name:16} p50 {block.p50:6.2f} p99 {block.p99:7.2f}"
            f" p99.9 {block.p999:7.2f} ms (alone {alone.p50:.2f} {alone.p99:.2f}"
            f" {alone.p999:.2f}) best-effort {block.be_cpus:.2f} CPUs, {block.work:.0f} rounds/s",
            flush=True,
        )
    return found


def report(
    bench: arms.Bench,
    out: Path | None,
    levels: Sequence[settings.Level],
    *,
    rounds: int,
    seconds: float,
) -> int:
    """These levels, and every arm."""
    rows: dict[str, dict[str, tuple[intervals.Interval, intervals.Interval]]] = {}
    seeds = list(settings.REPORT_SEEDS)
    for level in levels:
        pairs = measured(
            bench, (*arms.OTHERS, arms.OURS), level, seeds, rounds=rounds, seconds=seconds
        )
        apart = intervals.void([pair for some in pairs.values() for pair in some])
        mark = "" if apart <= intervals.VOID else f" (noisy: alone differs {apart:.2f} times)"
        rows[level.name + mark] = {
            name: (
                intervals.interval([one.ratio("p99") for one in some]),
                intervals.interval([one.share(bench.cpus) for one in some]),
            )
            for name, some in pairs.items()
        }
    print("\n| load | arm | p99, times alone | best-effort, part of idle |\n|---|---|---|---|")
    for name, by_arm in rows.items():
        for arm, (latency, work) in by_arm.items():
            print(f"| {name} | {arm} | {latency} | {work} |")
    if out is not None:
        out.write_text(plot.svg(rows, "Latency-sensitive p99 and best-effort work, by arm"))
    return 0


def gate(bench: arms.Bench) -> int:
    """One level. A void run is repeated once, and then fails as noisy."""
    others = (arms.WEIGHTS, arms.QUOTA)
    for _ in range(2):
        pairs = measured(
            bench,
            (*others, arms.OURS),
            settings.GATE,
            list(settings.REPORT_SEEDS),
            rounds=2 * settings.GATE_ROUNDS,
            seconds=3.0,
        )
        apart = intervals.void([pair for some in pairs.values() for pair in some])
        if apart > intervals.VOID:
            print(f"void: LS-alone p99 differs {apart:.2f} times between blocks")
            continue
        problems = intervals.verdict(
            pairs[arms.OURS.name], {one.name: pairs[one.name] for one in others}, bench.cpus
        )
        print("\n".join(problems) or "co-location: passed")
        return 1 if problems else 0
    print("co-location: too noisy to judge, twice")
    return 1


def main() -> int:
    """Choose."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.colocation")
    parser.add_argument("--gate", action="store_true", help="one level, with a verdict")
    parser.add_argument("--plot", type=Path, help="where the plot goes")
    parser.add_argument("--rounds", type=int, default=settings.ROUNDS)
    parser.add_argument("--seconds", type=float, default=settings.SECONDS)
    parser.add_argument("--level", action="append", help="begin of a level's name; else all")
    args = parser.parse_args()
    chosen = tuple(
        one
        for one in settings.LEVELS
        if args.level is None or any(one.name.startswith(name) for name in args.level)
    )
    # Whoever ends it wants no hogs and groups left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bench = arms.Bench()
    try:
        bench.open()
        if args.gate:
            return gate(bench)
        return report(bench, args.plot, chosen, rounds=args.rounds, seconds=args.seconds)
    finally:
        bench.close()


if __name__ == "__main__":
    sys.exit(main())
