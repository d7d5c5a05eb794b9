"""Publishes what the agent does: log, audit log, counters, and the view that others read.

Covers: turning results and plans into words, logging each repeated condition once.
Does not cover: rendering for HTTP or gRPC (``report``), deciding anything.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from koordlet import log
from koordlet.apply import planner
from koordlet.history import window
from koordlet.host import machine
from koordlet.model import (
    absence,
    action,
    cgroup,
    counters,
    decision,
    errors,
    plan,
    pod,
    prediction,
    result,
    snapshot,
)
from koordlet.model.record import dataclass
from koordlet.policy.framework import chain
from koordlet.report import plan_json, scaled, view
from koordlet.state import audit

if typing.TYPE_CHECKING:
    # A machine without a kubelet never loads it.
    from koordlet.model import spread

#: Passes of which durations and lateness are shown: ten minutes of ticks.
_RECENT = 600
#: A pass that comes so much later than its clock is late: half the period of the tick lane.
_LATE = 0.5
#: The quantiles that are shown, as Prometheus spells them.
_SHARES = (("0.5", 0.5), ("0.99", 0.99), ("1", 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass observed, decided and drafted."""

    snapshot: snapshot.Snapshot
    round: chain.Round
    draft: planner.Draft
    #: What is in use, as far as it was read.
    used: counters.Usage = field(default_factory=counters.Usage)
    predicted: prediction.Prediction = field(default_factory=prediction.Prediction)
    #: Counter files by what happened to them, and descriptors that are kept for them.
    files: Mapping[str, int] = field(default_factory=dict)
    descriptors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is published with a pass and comes from elsewhere than its plan."""

    #: CPU time of the pass, and how much later than its clock it came: ``None`` without a clock.
    seconds: float
    lateness: float | None
    #: What does not come back from the kernel or systemd.
    stale: absence.Stale | None
    #: What the disk of the agent's own files does not answer, in words.
    disk: str
    unanswered: Sequence[absence.Unanswered]
    #: (policy, signal, outcome) to how often.
    evictions: Mapping[tuple[str, str, str], int]
    #: Of the container runtime and the driver of resource claims.
    conditions: tuple[decision.Condition, ...]
    runtime: Mapping[str, float]
    driver: Mapping[str, float]
    shutdown: Mapping[str, float]
    #: How long the kubelet took to answer, by path and status.
    kubelet_seconds: Mapping[tuple[str, str], spread.Spread]


class Publisher:
    """Everything that one agent publishes."""

    def __init__(self, book: audit.Audit, *, mode: str) -> None:
        self.audit = book
        self.mode = mode
        self.log = log.get()
        self.repeats = log.Repeats(time.monotonic)
        self.counters = view.AgentCounters(started=time.time())
        self.view: view.ReportView | None = None
        self.ready = False
        #: Why the configuration file as it is now is not in force.
        self.config_problem = ""
        self._config: str | None = None
        #: Why the agent will not be ready; empty where it is, or is about to be.
        self.unready = ""
        #: Endpoint to why it could not start.
        self._endpoint_problems: Mapping[str, str] = {}
        self._unanswered = UnansweredReads()
        self._epoch = os.urandom(16).hex()
        self._revision = 0
        #: Plans carried out; the epoch and this number name a plan in the audit log.
        self._plans = 0
        self._content: tuple[object, ...] = ()
        self._lacking: frozenset[absence.Unsupported] = frozenset()
        self._pods: Sequence[pod.Pod] = ()
        self._subjects: Mapping[str, str] = {}
        self._places: Mapping[str, str | None] = {}
        self._results: tuple[result.Result, ...] = ()
        self._scaled = scaled.Scaled()
        self._took, self._late = window.Recent(_RECENT), window.Recent(_RECENT)

    def warn_discarded(self, policy: str, problem: str) -> None:
        """Log why a checkpoint is not used; nothing without a problem."""
        if problem:
            self.log.warning("checkpoint.discarded", policy=policy, detail=problem)

    def set_mode(self, mode: str) -> None:
        """Take the mode of the passes to come."""
        self.mode = mode

    def set_config(self, text: str | None, *, problem: str, unready: str) -> None:
        """Take the file in force, why its newest text is not, and why the agent is not ready."""
        self._config, self.config_problem, self.unready = text, problem, unready

    def set_pods(self, pods: Sequence[pod.Pod]) -> None:
        """Take the workloads that the next records are about."""
        if pods is not self._pods:
            self._pods = pods
            self._subjects = {each.group: each.key for each in pods if each.group is not None}
            self._places = {each.key: each.group for each in pods}

    def record_step(self, outcome: result.Result) -> None:
        """Write one step to the audit log and, where a person should know, to the log."""
        if outcome.verdict is result.Verdict.WAITING:
            return
        record = audit_record(outcome, self._subjects)
        self.audit.add({"at": time.time(), "plan": f"{self._epoch[:8]}-{self._plans}", **record})
        fields = {key: value for key, value in record.items() if key not in ("policy", "verdict")}
        event = f"{record['policy']}.{outcome.verdict.value}"
        if outcome.verdict in result.BAD or outcome.contested:
            self.repeats.say(self.log.warning, event, (outcome.target, outcome.detail), **fields)
        else:
            self.log.info(event, **fields)

    @contextlib.contextmanager
    def recording(self) -> Iterator[Callable[[result.Result], None]]:
        """Give what records the steps of one plan; however that ends, flush its records."""
        self._plans += 1
        try:
            yield self.record_step
        finally:
            self.audit.flush()

    def record_alone(self, outcome: result.Result) -> None:
        """Write a step of no plan, such as an eviction under way, at once."""
        with self.recording() as record:
            record(outcome)

    def record_pass(self, made: Pass, results: Sequence[result.Result], beside: Beside) -> None:
        """Count one pass, log what is wrong, publish the view."""
        shown = made.draft.plan if self.mode == "enforce" else plan.shadowed(made.draft.plan)
        problems = (
            ("StateDiskHangs", "DiskDoesNotAnswer", beside.disk),
            ("ConfigurationRefused", "InvalidFile", self.config_problem),
            ("ReadsUnanswered", "NoAnswer", self._unanswered.update(beside.unanswered)),
        )
        own = (
            decision.Condition(type=kind, status=True, reason=reason, message=message)
            for kind, reason, message in problems
            if message
        )
        shown = replace(
            shown,
            conditions=(*shown.conditions, *beside.conditions, *own),
            limit=view.limit(shown.limit, results),
        )
        self._complain(shown)
        verdicts = [outcome.verdict for outcome in results]
        before = self.counters
        self._took.add(beside.seconds)
        measured: dict[str, Any] = {
            "tick_cpu_seconds": beside.seconds,
            "tick_cpu": before.tick_cpu.with_one(beside.seconds),
        }
        if beside.lateness is not None:
            self._late.add(beside.lateness)
            measured["tick_lateness_seconds"] = beside.lateness
            measured["tick_delay"] = before.tick_delay.with_one(beside.lateness)
        errnos = dict(before.errnos)
        for outcome in results:
            if outcome.errno is not None:
                name = errors.errno_name(outcome.errno)
                errnos[name] = errnos.get(name, 0) + 1
        failures = dict(before.failures)
        for failure in shown.failures:
            failures[failure.policy] = failures.get(failure.policy, 0) + 1
        self.counters = replace(
            before,
            ticks=before.ticks + 1,
            late_ticks=before.late_ticks + ((beside.lateness or 0.0) > _LATE),
            writes=before.writes + verdicts.count(result.Verdict.DONE),
            refusals=before.refusals + verdicts.count(result.Verdict.REFUSED),
            errnos=errnos,
            contested=before.contested + sum(outcome.contested for outcome in results),
            conflicts=before.conflicts + len(shown.conflicts),
            failures=failures,
            **measured,
            durations=_quantiles(self._took),
            lateness=_quantiles(self._late),
            files=made.files,
            collected=_collected(before, made),
            evictions=beside.evictions,
            descriptors=made.descriptors,
        )
        if results:
            self._results = tuple(results)
        machine.step_aside()
        self._publish(made, shown, results, beside)

    def _complain(self, shown: plan.Plan) -> None:
        warn, count = functools.partial(self.repeats.say, self.log.warning), self.repeats.count
        for failure in shown.failures:
            event = f"{failure.policy}.failed"
            self.repeats.say(self.log.error, event, failure.error, error=failure.error)
        for condition in shown.conditions:
            subject, message = condition.subject, condition.message
            # Nearly none of them is due: the words are put together where one is.
            if condition.status and (times := count((condition.type, subject, message))):
                event = f"condition.{condition.type}"
                self.log.warning(event, subject=subject, message=message, times=times)
        for clash in shown.conflicts:
            warn(
                f"{clash.dropped_policy}.conflict",
                clash.target,
                target=clash.target,
                dropped=clash.dropped,
                kept=clash.kept,
                kept_policy=clash.kept_policy,
            )
        for gap in shown.unsupported:
            # A host lacks a feature for good: one log line is enough.
            if gap not in self._lacking:
                warn("host.unsupported", gap, feature=gap.feature, why=gap.why)
        self._lacking = frozenset(shown.unsupported)

    def _publish(
        self,
        made: Pass,
        shown: plan.Plan,
        results: Sequence[result.Result],
        beside: Beside,
    ) -> None:
        seen = made.snapshot
        self.set_pods(seen.pods)
        content = (seen.topology, seen.pods, seen.unsupported, shown.ledger, shown.conditions)
        if content != self._content:
            self._content = content
            self._revision += 1
        self.view = view.ReportView(
            epoch=self._epoch,
            revision=self._revision,
            mode=self.mode,
            ready=self.ready,
            unready=self.unready or view.STARTING,
            config=self._config,
            snapshot=seen,
            plan=shown,
            results=self._results,
            usage=view.PodCores(self._places, made.used.groups),
            used=made.used,
            predicted=made.predicted,
            checks=self._checks(shown, results, beside),
            counters=self.counters,
            scaled=self._scaled.passed(results, seen.groups),
            runtime=beside.runtime,
            driver=beside.driver,
            shutdown=beside.shutdown,
            took=beside.kubelet_seconds,
        )

    def _checks(
        self, shown: plan.Plan, results: Sequence[result.Result], beside: Beside
    ) -> tuple[view.Check, ...]:
        refused = [outcome.target for outcome in results if outcome.verdict in result.BAD]
        failed = "; ".join(f"{failure.policy}: {failure.error}" for failure in shown.failures)
        stuck, stale, lost = "", beside.stale, self.audit.lost
        if stale is not None:
            stuck = f"{stale.item}: no answer for {stale.seconds:.0f} s; {stale.waiting} wait"
        problems = {
            "policies": failed,
            "writes": ", ".join(refused[:5]),
            "configuration": self.config_problem,
            "surfaces": "; ".join(self._endpoint_problems.values()),
            "worker": stuck,
            "disk": beside.disk,
            "reads": self._unanswered.why,
            "audit": f"{lost} lines lost" if lost else "",
        }
        return tuple(
            view.Check(name=name, ok=not detail, detail=detail) for name, detail in problems.items()
        )

    def set_ready(self, endpoint_problems: Mapping[str, str]) -> None:
        """Take that the first verified pass is over, and which endpoints could not start."""
        self._endpoint_problems = endpoint_problems
        self.ready = not self.unready
        if self.ready and self.view is not None:
            self.view = replace(self.view, ready=True)


class UnansweredReads:
    """Remembers which file was named, so that the condition changes only with the case."""

    def __init__(self) -> None:
        #: The condition in words; empty while every read is answered.
        self.why = ""
        self._named: absence.Unanswered | None = None

    def update(self, met: Sequence[absence.Unanswered]) -> str:
        """Take the reads of a pass that got no answer; return the condition in words."""
        if not met:
            self._named, self.why = None, ""
            return ""
        # A file without any known value comes first; the file named before stays named.
        first = next((read for read in met if not read.held), met[0])
        if self._named not in met or (self._named is not None and self._named.held > first.held):
            self._named = first
        named = self._named or first
        others = " and others" if len(met) > 1 else ""
        rest = "what was read last holds"
        if not all(read.held for read in met):
            rest += ", and nothing is put back, because some of it was never read"
        self.why = f"{named}{others}: no answer from the kernel; {rest}; {named.fix}"
        return self.why


def _collected(before: view.AgentCounters, made: Pass) -> Mapping[str, tuple[int, int]]:
    """Count one more pass for each part of the machine, by whether it was read."""
    shape = made.snapshot.topology
    known = {"cpu_info": bool(shape.online), "numa_info": bool(shape.nodes)}
    if made.used.disks.slots:
        hung = made.files.get("hung", 0) > before.files.get("hung", 0)
        known["local_storage_info"] = not hung
    counted = dict(before.collected)
    for what, there in known.items():
        good, bad = counted.get(what, (0, 0))
        counted[what] = (good + there, bad + (not there))
    return counted


def audit_record(
    outcome: result.Result, subjects: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Give one result as the audit log keeps it. ``subjects``: cgroup to the workload in it."""
    record: dict[str, object] = {"verdict": outcome.verdict.value, "target": outcome.target}
    if outcome.step is not None:
        did = outcome.step.action
        record |= {
            "policy": did.policy,
            "kind": action.kind(did),
            "group": did.group,
            "was": outcome.step.was,
            "value": plan_json.value_of(did),
            "reason": did.reason,
            "undo": outcome.step.undo,
        }
        if isinstance(did, action.Evict):
            record |= {"signal": did.victim.signal, "message": did.victim.message}
            record |= {"pod": did.victim.pod}
        groups = (did.group, *cgroup.ancestors(did.group)) if did.group else ()
        owner = next((subjects[path] for path in groups if subjects and path in subjects), None)
        if owner is not None and "pod" not in record:
            record["pod"] = owner
    else:
        record["policy"] = "restore"
    if outcome.errno is not None:
        record["errno"] = outcome.errno
    if outcome.detail:
        record["detail"] = outcome.detail
    if outcome.contested:
        record["contested"] = True
    return record


def _quantiles(samples: window.Recent) -> dict[str, float]:
    quantiles = ((name, samples.quantile(share)) for name, share in _SHARES)
    return {name: value for name, value in quantiles if value is not None}
