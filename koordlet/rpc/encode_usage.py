"""Encodes usage, free resources, pressure and offers of a node as feed messages.

Covers: the sections usage, free, pressure, best effort; when a change of them is worth telling.
Does not cover: the other sections (``encode``), what changed (``feed``).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import message as protobuf

from koordlet.history import series, shares, window
from koordlet.model import cpuset, meter, resources
from koordlet.report import quantities, view
from koordlet.rpc import plain
from koordlet.rpc.gen import feed_pb2

#: Seconds of the windows that are told of the node.
WINDOWS = (300, 1800)
#: What is told of a window.
_READS: tuple[tuple[str, Callable[[window.Window], float]], ...] = (
    ("avg", lambda used: used.average),
    *((f"p{part * 100:.0f}", operator.methodcaller("quantile", part)) for part in window.REPORTED),
)
#: What a field counts of a unit, where that is not the unit itself.
_SCALES = {"cores": 1000, "percent": 10}
#: An amount that moves by less than this, or by less than a part of it, is the same.
_CPU_STEP, _MEMORY_STEP, _PART = 100, 128 << 20, 0.05
_STEPS = {"cores": _CPU_STEP, "bytes": _MEMORY_STEP}
_OFFER_STEPS = dict.fromkeys((resources.BATCH_CPU, resources.MID_CPU), _CPU_STEP)
#: Thousandths of time; a stall that moves by less is the same.
_STALL_STEP = 50


def usage(now: view.ReportView, windows: list[feed_pb2.Window]) -> feed_pb2.Usage:
    """Current usage, and usage over the windows."""
    node, table = now.used.node, now.used.shares
    return feed_pb2.Usage(
        node=_amount("node", functools.partial(node.value, "")),
        system=_amount("shares", functools.partial(table.value, shares.SYSTEM)),
        classes=[
            feed_pb2.ClassUsage(
                name=name, used=_amount("shares", functools.partial(table.value, name))
            )
            for name in shares.SUBJECTS
            if name != shares.SYSTEM
        ],
        windows=windows,
    )


def windows(past: series.History, at: float) -> list[feed_pb2.Window]:
    """Average and quantiles of the node, of the windows that have enough samples."""
    made = []
    for seconds in WINDOWS:
        several = {
            what: past.node.window("", what, at, seconds) for _, what in quantities.fields("node")
        }
        known = {what: used for what, used in several.items() if used is not None}
        if len(known) < len(several):
            continue
        made += [
            feed_pb2.Window(
                seconds=seconds,
                quantile=name,
                node=_amount("node", {what: read(used) for what, used in known.items()}.get),
            )
            for name, read in _READS
        ]
    return made


def free(now: view.ReportView) -> feed_pb2.Free:
    """Online CPUs that are not exclusive, by NUMA node and last-level cache."""
    seen = now.snapshot.topology
    left = now.snapshot.allowed - now.plan.ledger.held()
    parts: dict[tuple[int | None, int | None], list[int]] = {}
    for cpu in seen.cpus:
        if cpu.online:
            cpus = parts.setdefault((cpu.node, cpu.l3), [])
            if cpu.cpu in left:
                cpus.append(cpu.cpu)
    ordered = sorted(parts.items(), key=lambda item: tuple(-1 if k is None else k for k in item[0]))
    return feed_pb2.Free(
        domains=[
            feed_pb2.FreeCpus(node=node, l3=l3, cpus=str(cpuset.CPUSet.of(cpus)))
            for (node, l3), cpus in ordered
        ]
    )


def pressure(now: view.ReportView) -> feed_pb2.Pressure:
    """Signals against their thresholds, and how long tasks were stalled."""
    stalls = []
    for pressure in meter.PRESSURES:
        averages = {"some_milli": pressure.some[0], "full_milli": pressure.full[0]}
        fields = {
            field: _number(now.used.node.value("", what), what) for field, what in averages.items()
        }
        if any(number is not None for number in fields.values()):
            stalls.append(feed_pb2.Stall(resource=pressure.resource, **fields))
    return feed_pb2.Pressure(
        signals=[plain.message(feed_pb2.Signal, signal) for signal in now.plan.signals],
        stalls=stalls,
    )


def best_effort(now: view.ReportView) -> feed_pb2.BestEffort:
    """Offered batch and mid resources."""
    offer = now.plan.offer
    amounts: Mapping[str, int] = {} if offer is None else offer.amounts
    return feed_pb2.BestEffort(
        offers=[feed_pb2.Offer(resource=n, amount=amounts[n]) for n in sorted(amounts)]
    )


def _amount(table: str, read: Callable[[meter.Meter], float | None]) -> feed_pb2.Amount:
    return feed_pb2.Amount(
        **{field: _number(read(what), what) for field, what in quantities.fields(table)}
    )


def _number(value: float | None, what: meter.Meter) -> int | None:
    if value is None:
        return None
    scale = _SCALES.get(what.unit)
    return max(0, int(value) if scale is None else round(value * scale))


# Worth telling ------------------------------------------------------------------------------------


def settled(old: protobuf.Message, new: protobuf.Message) -> bool:
    """True if a section has not changed enough to matter to a scheduler."""
    if isinstance(old, feed_pb2.Usage) and isinstance(new, feed_pb2.Usage):
        # Windows move slowly and go along with whatever else is told.
        amounts = [
            [use.node, use.system, *(each.used for each in use.classes)] for use in (old, new)
        ]
        return (
            len(old.classes) == len(new.classes)
            and len(old.windows) == len(new.windows)
            and all(_same_amount(a, b) for a, b in zip(*amounts, strict=True))
        )
    if isinstance(old, feed_pb2.Pressure) and isinstance(new, feed_pb2.Pressure):
        return _same_pressure(old, new)
    if isinstance(old, feed_pb2.BestEffort) and isinstance(new, feed_pb2.BestEffort):
        steps = {offer.resource: offer.amount for offer in old.offers}
        return len(steps) == len(new.offers) and all(
            offer.resource in steps
            and _close(
                steps[offer.resource], offer.amount, _OFFER_STEPS.get(offer.resource, _MEMORY_STEP)
            )
            for offer in new.offers
        )
    return False


def _same_amount(old: feed_pb2.Amount, new: feed_pb2.Amount) -> bool:
    return all(
        old.HasField(field) == new.HasField(field)
        and _close(getattr(old, field), getattr(new, field), _STEPS.get(what.unit, 0))
        for field, what in quantities.fields("node")
    )


def _same_pressure(old: feed_pb2.Pressure, new: feed_pb2.Pressure) -> bool:
    """True if the same thresholds are met, whatever the values."""

    def named(each: feed_pb2.Pressure) -> tuple[list[Any], list[str]]:
        signals = [(s.name, s.threshold, s.HasField("met"), s.met) for s in each.signals]
        return signals, [stall.resource for stall in each.stalls]

    return named(old) == named(new) and all(
        abs(getattr(a, field) - getattr(b, field)) < _STALL_STEP
        for a, b in zip(old.stalls, new.stalls, strict=True)
        for field in ("some_milli", "full_milli")
    )


def _close(old: int, new: int, step: int) -> bool:
    return abs(new - old) <= max(step, _PART * old)
