"""Two questions that a person has about a node, answered from the newest view. Pure.

Covers: is the service safe; what does best-effort work get of what is idle.
Does not cover: what was done last, which is the newest of ``marks``; how that is drawn
(``page/answers.js``); each number's history (``recorder``).

Rules:
1. The service is at risk while a signal is met, or a write or policy fails. ``cpu.suppress`` is no
   risk: met, it means that best-effort work is held back, as it should be.
2. Idle is what neither latency-sensitive work nor the system uses of the online CPUs, so what
   best-effort work uses is part of it.
3. What is not known is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import qos
from koordlet.report import view

GOOD, WARN, BAD, UNKNOWN = "good", "warn", "bad", "unknown"
#: Rule 1.
_HELD_BACK = "cpu.suppress"
_SENSITIVE = (qos.Qos.LSE, qos.Qos.LSR, qos.Qos.LS)
#: Series by the words that a person reads; the scale and the form of the number.
_FACTS = (
    ("p99 of requests", "LS/latencySeconds", 1000, "{:.1f} ms"),
    ("CPU waiting", "LS/waitingRatio", 100, "{:.1f} % of its CPU time"),
    ("CPU pressure", "LS/pressure.cpu.some", 100, "{:.1f} %"),
    ("throttled", "LS/throttledRatio", 100, "{:.1f} %"),
)


def document(now: view.ReportView, row: Mapping[str, float]) -> dict[str, object]:
    """Both answers. ``row``: the newest row of the recorder."""
    return {"service": service(now, row), "bestEffort": best_effort(now, row)}


def _answer(level: str, headline: str, detail: str, **facts: object) -> dict[str, object]:
    return {"level": level, "headline": headline, "detail": detail, **facts}


def service(now: view.ReportView, row: Mapping[str, float]) -> dict[str, object]:
    """Whether it is safe."""
    facts = [
        [word, form.format(scale * row[name])] for word, name, scale, form in _FACTS if name in row
    ]
    count = sum(pod.qos in _SENSITIVE for pod in now.snapshot.pods)
    if not count:
        detail = "no latency-sensitive workload is declared"
        return _answer(UNKNOWN, "No service", detail, facts=facts)
    met = [
        f"{signal.name} is {signal.observed}, threshold {signal.threshold}"
        for signal in now.plan.signals
        if signal.met and signal.name != _HELD_BACK
    ]
    if met:
        return _answer(BAD, "At risk", "; ".join(met), facts=facts)
    failed = [f"{check.name}: {check.detail}" for check in now.checks if not check.ok]
    if failed:
        return _answer(WARN, "Not sure", "; ".join(failed), facts=facts)
    if now.mode != "enforce":
        return _answer(WARN, "Not protected", "this agent only observes", facts=facts)
    workloads = "workload" if count == 1 else "workloads"
    known = sum(signal.met is False for signal in now.plan.signals)
    detail = f"{count} latency-sensitive {workloads}; none of {known} signals is met"
    return _answer(GOOD, "Safe", detail, facts=facts)


def best_effort(now: view.ReportView, row: Mapping[str, float]) -> dict[str, object]:
    """What it gets of what is idle."""
    limit = view.acting(now)
    detail = "not limited"
    if limit is not None:
        detail = f"may use {view.allowance(limit)}: {limit.reason} ({limit.policy})"
    elif now.plan.limit is not None:
        detail = f"not limited: {now.plan.limit.idle}"
    classes = ("LSE", "LSR", "LS", "system", "BE")
    unknown = [name for name in classes if f"{name}/cpuCores" not in row]
    *others, used = (row.get(f"{name}/cpuCores") for name in classes)
    cpus = row.get("node/cpus")
    if not any(pod.qos is qos.Qos.BE for pod in now.snapshot.pods):
        return _answer(UNKNOWN, "No best-effort work", "none is declared", used=None, idle=None)
    if used is None or cpus is None or None in others:
        why = f"{detail}; CPU use of {', '.join(unknown) or 'the node'} is not measured yet"
        return _answer(UNKNOWN, "Not known yet", why, used=used, idle=None)
    idle = max(cpus - sum(cores or 0.0 for cores in others), used)
    headline = f"{_cores(used)} of {_cores(idle)} idle CPUs"
    return _answer(GOOD, headline, detail, used=round(used, 4), idle=round(idle, 4), cpus=cpus)


def _cores(cores: float) -> str:
    """Three digits of what has them, as charts write it."""
    return f"{cores:.{2 if cores < 10 else 1 if cores < 100 else 0}f}"
