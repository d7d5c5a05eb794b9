"""Greets a person after ``koordlet run``, and narrates the demo while it runs.

Covers: machine, owners, enforced policies, where to look; of the demo one line for each change.
Does not cover: anything else in between; that is the log's and the surfaces' part.

Rules:
1. A line comes when what best-effort work has (its limit, else what it uses) has moved by a tenth
   of the machine since the line before, or nothing was told for ``SILENCE`` seconds while requests
   are measured; and not sooner than ``PAUSE`` seconds after it, or after the start: a person reads
   it, and the greeting first.
2. What is not known yet is not told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from koordlet.agent import endpoints
from koordlet.cli import output, plan
from koordlet.cli import topology as machine
from koordlet.demo import latency as requests
from koordlet.model import best_effort, meter, qos
from koordlet.report import view


def lines(now: view.ReportView, addresses: tuple[str, ...], *, demo_on: bool) -> list[str]:
    """The whole greeting."""
    enforcing = now.mode == "enforce"
    verb = "enforcing" if enforcing else "observing: nothing is changed"
    text = [f"koordlet on {output.visible(now.snapshot.node.name)}, {verb}"]
    text += [f"  ! {output.visible(warning)}" for warning in view.banner(now) if enforcing]
    text += ["", "The machine"]
    text += [
        f"  {'  ' * line.level}{line.text}".rstrip()
        for line in machine.lines(now.snapshot.topology)
    ]
    text += ["", "Whose CPUs", *(f"  {row}" for row in plan.owners(now.plan)), ""]
    text += [f"What {'is' if enforcing else 'would be'} enforced", *_workloads(now)]
    if now.plan.steps and not enforcing:
        text += ["", "What would be done"]
        text += [f"  {step.action.reason} ({step.action.target})" for step in now.plan.steps]
    text += ["", "Where to look", *(f"  {address}" for address in addresses)]
    if demo_on and enforcing:
        page = next((address for address in addresses if address.startswith("http")), None)
        if page is not None:
            text += [
                "",
                f"Open {page.split()[0]} beside this. For five of each twenty seconds the",
                "latency-sensitive service is asked for much; watch what best-effort work gets",
                "then, and how long requests take.",
            ]
        text += ["", "Ctrl-C stops the demo, puts everything back and removes its cgroups.", ""]
    elif demo_on:
        text += ["", "Run it as root to see it enforced. Ctrl-C stops it."]
    return text


def _workloads(now: view.ReportView) -> list[str]:
    rows = []
    for pod in now.snapshot.pods:
        group = now.snapshot.groups.get(pod.group) if pod.group is not None else None
        effective = group.effective() if group is not None else None
        used = now.usage.get(pod.key)
        cells = (
            "?" if effective is None else str(effective),
            "?" if used is None else f"{used:.2f}",
            now.plan.explanations.get("shared_pools", {}).get(pod.key, ""),
        )
        rows.append((pod.qos.value, pod.key, pod.group or "not running", *cells))
    if not rows:
        return ["  nothing: no workload is declared (workloads: in the configuration)"]
    head = ("QOS", "WORKLOAD", "CGROUP", "CPUS", "CORES USED", "WHY")
    return output.table(rows, head=head, indent="  ")


PAUSE = 2.0
SILENCE = 5.0
_STEP = 0.1


class Narrator:
    """Remembers what was told."""

    def __init__(self) -> None:
        self._told: float | None = None
        self._at: float | None = None

    def line(self, now: view.ReportView, latency: requests.Latency | None = None) -> str | None:
        """The next line of the story, or nothing new."""
        whole = len(now.snapshot.topology.online)
        if self._at is None:
            self._at = now.snapshot.at
        felt = now.used.shares.value(qos.Qos.LS.value, meter.CPU_SHARE)
        limit = now.plan.limit
        if limit is None or felt is None or not whole:
            return None
        had = limit.be_milli if limit.milli is None else limit.milli
        if had is None:
            return None
        cores = had / 1000
        moved = self._told is None or abs(cores - self._told) >= _STEP * whole
        quiet = now.snapshot.at - self._at
        if quiet < PAUSE or not (moved or (latency is not None and quiet >= SILENCE)):
            return None
        way = ""
        if self._told is not None and moved:
            way = ", less than before" if cores < self._told else ", more"
        self._told = cores if moved else self._told
        self._at = now.snapshot.at
        clock = time.strftime("%H:%M:%S", time.localtime(now.snapshot.wall))
        answered = "" if latency is None else f" ({latency})"
        return (
            f"{clock}  latency-sensitive work uses {felt:.2f} of {whole} CPUs{answered};"
            f" best-effort work {_does(limit, cores, way)}"
        )


def _does(limit: best_effort.Limit, cores: float, way: str) -> str:
    """Describe the limit, and which policy set it."""
    has = f"uses {cores:.2f}{way}" if limit.milli is None else f"may have {cores:.2f} CPUs{way}"
    if not limit.idle:
        return f"{has}: {output.visible(limit.reason)}"
    if limit.milli is not None:
        has = f"is not limited, {limit.policy} would let it have {cores:.2f} CPUs{way}"
    return f"{has}, and does not yield: {output.visible(limit.idle)}"


class Narrated(endpoints.Endpoints):
    """Endpoints that also tell a person about each view they publish."""

    def __init__(
        self,
        *given: Any,
        latency: Callable[[], requests.Latency | None] = lambda: None,
        **named: Any,
    ) -> None:
        def seconds() -> float | None:
            newest = latency()
            return None if newest is None else newest.p99 / 1000

        super().__init__(*given, latency=seconds, **named)
        self._requests = latency
        self._narrator: Narrator | None = None

    def publish(self, now: view.ReportView | None) -> None:
        """Publish a new view, and narrate it."""
        super().publish(now)
        if now is None or not now.ready:
            return
        if self._narrator is None:
            self._narrator = Narrator()
        line = self._narrator.line(now, self._requests())
        if line is not None:
            print(line, flush=True)
