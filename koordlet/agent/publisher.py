"""Says what the agent does: log, audit log, counters, and the published view.

Covers: turning results and plans into words, each repeated condition said once.
Does not cover: rendering for HTTP or gRPC (``report``), deciding anything.
"""

from __future__ import annotations

import contextlib
import time
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from koordlet import log
from koordlet.agent import tick
from koordlet.agent import unanswered_reads as silence
from koordlet.history import recent
from koordlet.model import absence, action, cgroup, decision, errors, plan, pod, result
from koordlet.report import in_force, plan_json, scaled, view
from koordlet.state import audit

if typing.TYPE_CHECKING:
    # A machine without a kubelet never loads it.
    from koordlet.model import spread

#: Passes of which durations and lateness are shown: ten minutes of ticks.
_RECENT = 600
#: The quantiles that are shown, as Prometheus spells them.
_SHARES = (("0.5", 0.5), ("0.99", 0.99), ("1", 1.0))


class Teller:
    """Everything that one agent says."""

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
        #: Why the agent will not be ready; empty where it is, or is about to be.
        self.unready = ""
        #: Surface to why it could not start.
        self.surface_problems: Mapping[str, str] = {}
        #: What does not come back from the kernel or systemd.
        self.stale: absence.Stale | None = None
        #: What the disk of our own files does not answer, in words.
        self.disk = ""
        #: (policy, signal, outcome) to how often.
        self.evictions: Mapping[tuple[str, str, str], int] = {}
        #: What is the case beside the plan, and what is counted beside the line.
        self.standing: Callable[[], tuple[decision.Condition, ...]] = tuple
        self.runtime: Callable[[], Mapping[str, float]] = dict
        #: How long answers of the kubelet took, by path and status.
        self.took: Callable[[], Mapping[tuple[str, str], spread.Spread]] = dict
        self._unanswered = silence.Unanswered()
        self._epoch = uuid.uuid4().hex
        self._revision = 0
        #: Plans that were carried out: with the epoch, the name of one in the audit log.
        self._plans = 0
        self._content: tuple[object, ...] = ()
        self._lacking: frozenset[absence.Unsupported] = frozenset()
        self._pods: Sequence[pod.Pod] = ()
        self._subjects: Mapping[str, str] = {}
        self._places: Mapping[str, str | None] = {}
        self._results: tuple[result.Result, ...] = ()
        self._scaled = scaled.Scaled()
        self._took, self._late = recent.Recent(_RECENT), recent.Recent(_RECENT)

    def concern(self, pods: Sequence[pod.Pod]) -> None:
        """What comes next is about these workloads."""
        if pods is not self._pods:
            self._pods = pods
            self._subjects = {one.group: one.key for one in pods if one.group is not None}
            self._places = {one.key: one.group for one in pods}

    def heard(self, one: result.Result) -> None:
        """One step: to the audit log and, where a person should know, to the log."""
        if one.verdict is result.Verdict.WAITING:
            return
        record = audit_record(one, self._subjects)
        self.audit.add({"at": time.time(), "plan": f"{self._epoch[:8]}-{self._plans}", **record})
        fields = {key: value for key, value in record.items() if key not in ("policy", "verdict")}
        event = f"{record['policy']}.{one.verdict.value}"
        if one.verdict in result.BAD or one.contested:
            self.repeats.say(self.log.warning, event, (one.target, one.detail), **fields)
        else:
            self.log.info(event, **fields)

    @contextlib.contextmanager
    def carrying_out(self) -> Iterator[Callable[[result.Result], None]]:
        """Whom the steps of one plan are told; however it ends, its records are written then."""
        self._plans += 1
        try:
            yield self.heard
        finally:
            self.audit.flush()

    def heard_alone(self, one: result.Result) -> None:
        """A step of no plan, such as an eviction under way: a record of its own, at once."""
        with self.carrying_out() as heard:
            heard(one)

    def passed(
        self,
        made: tick.Pass,
        results: Sequence[result.Result],
        *,
        seconds: float,
        lateness: float | None,
        late: bool,
        unanswered: Sequence[absence.Unanswered] = (),
    ) -> None:
        """One pass: count it, say what is wrong, publish the view."""
        shown = made.draft.plan if self.mode == "enforce" else plan.shadowed(made.draft.plan)
        more = (*self.standing(), *((_hangs(self.disk),) if self.disk else ()))
        more += (_refused(self.config_problem),) if self.config_problem else ()
        more += self._unanswered.passed(unanswered)
        limit = in_force.limit(shown.limit, results)
        shown = replace(shown, conditions=(*shown.conditions, *more), limit=limit)
        self._complain(shown)
        verdicts = [one.verdict for one in results]
        before = self.counters
        failures = dict(before.failures)
        for failure in shown.failures:
            failures[failure.policy] = failures.get(failure.policy, 0) + 1
        self.counters = replace(
            before,
            ticks=before.ticks + 1,
            late_ticks=before.late_ticks + late,
            writes=before.writes + verdicts.count(result.Verdict.DONE),
            refusals=before.refusals + verdicts.count(result.Verdict.REFUSED),
            errnos=_counted(before.errnos, results),
            contested=before.contested + sum(one.contested for one in results),
            conflicts=before.conflicts + len(shown.conflicts),
            failures=failures,
            **self._measured(seconds, lateness),
            files=made.files,
            collected=_collected(before, made),
            evictions=dict(self.evictions),
            descriptors=made.descriptors,
        )
        if results:
            self._results = tuple(results)
        self._publish(made, shown, results)

    def _measured(self, seconds: float, lateness: float | None) -> dict[str, Any]:
        """What this pass took, and how late the newest ones of the clock came."""
        found: dict[str, Any] = {"tick_cpu_seconds": seconds}
        self._took.add(seconds)
        if lateness is not None:
            self._late.add(lateness)
            found["tick_lateness_seconds"] = lateness
        return found | {
            "durations": _quantiles(self._took),
            "lateness": _quantiles(self._late),
        }

    def _complain(self, shown: plan.Plan) -> None:
        for failure in shown.failures:
            event = f"{failure.policy}.failed"
            self.repeats.say(self.log.error, event, failure.error, error=failure.error)
        for one in shown.conditions:
            if not one.status:
                continue
            self.repeats.say(
                self.log.warning,
                f"condition.{one.type}",
                (one.subject, one.message),
                subject=one.subject,
                message=one.message,
            )
        for clash in shown.conflicts:
            self.repeats.say(
                self.log.warning,
                f"{clash.dropped_policy}.conflict",
                clash.target,
                target=clash.target,
                dropped=clash.dropped,
                kept=clash.kept,
                kept_policy=clash.kept_policy,
            )
        for gap in shown.unsupported:
            # What a machine lacks it lacks for good: that is no news at the tenth time.
            if gap not in self._lacking:
                self.repeats.say(
                    self.log.warning, "host.unsupported", gap, feature=gap.feature, why=gap.why
                )
        self._lacking = frozenset(shown.unsupported)

    def _publish(
        self,
        made: tick.Pass,
        shown: plan.Plan,
        results: Sequence[result.Result],
    ) -> None:
        seen = made.snapshot
        self.concern(seen.pods)
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
            snapshot=seen,
            plan=shown,
            results=self._results,
            usage=view.PodCores(self._places, made.used.groups),
            used=made.used,
            predicted=made.predicted,
            checks=self._checks(shown, results),
            counters=self.counters,
            scaled=self._scaled.passed(results, seen.groups),
            runtime=self.runtime(),
            took=self.took(),
        )

    def _checks(self, shown: plan.Plan, results: Sequence[result.Result]) -> tuple[view.Check, ...]:
        refused = [one.target for one in results if one.verdict in result.BAD]
        failed = "; ".join(f"{one.policy}: {one.error}" for one in shown.failures)
        return (
            view.Check(name="policies", ok=not failed, detail=failed),
            view.Check(name="writes", ok=not refused, detail=", ".join(refused[:5])),
            view.Check(
                name="configuration", ok=not self.config_problem, detail=self.config_problem
            ),
            view.Check(
                name="surfaces",
                ok=not self.surface_problems,
                detail="; ".join(self.surface_problems.values()),
            ),
            view.Check(name="worker", ok=self.stale is None, detail=_stuck(self.stale)),
            view.Check(name="disk", ok=not self.disk, detail=self.disk),
            view.Check(name="reads", ok=not self._unanswered.why, detail=self._unanswered.why),
            view.Check(
                name="audit",
                ok=self.audit.lost == 0,
                detail=f"{self.audit.lost} lines lost" if self.audit.lost else "",
            ),
        )

    def became_ready(self) -> None:
        """The first verified pass is done and the surfaces are up."""
        self.ready = not self.unready
        if self.ready and self.view is not None:
            self.view = replace(self.view, ready=True)


def _counted(before: Mapping[str, int], results: Sequence[result.Result]) -> Mapping[str, int]:
    counts = dict(before)
    for one in results:
        if one.errno is not None:
            name = errors.errno_name(one.errno)
            counts[name] = counts.get(name, 0) + 1
    return counts


def _collected(before: view.AgentCounters, made: tick.Pass) -> Mapping[str, tuple[int, int]]:
    """One pass more for each part of the machine, by whether it was known in it."""
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


def _hangs(why: str) -> decision.Condition:
    return decision.Condition(
        type="StateDiskHangs", status=True, reason="DiskDoesNotAnswer", message=why
    )


def _refused(why: str) -> decision.Condition:
    return decision.Condition(
        type="ConfigurationRefused", status=True, reason="InvalidFile", message=why
    )


def _stuck(one: absence.Stale | None) -> str:
    if one is None:
        return ""
    return f"{one.item} has not come back for {one.seconds:.0f} s, {one.waiting} wait behind it"


def audit_record(
    one: result.Result, subjects: Mapping[str, str] | None = None
) -> dict[str, object]:
    """One result as the audit log keeps it. ``subjects`` are cgroups and the workloads in them."""
    record: dict[str, object] = {"verdict": one.verdict.value, "target": one.target}
    if one.step is not None:
        did = one.step.action
        record |= {
            "policy": did.policy,
            "kind": action.kind(did),
            "group": did.group,
            "was": one.step.was,
            "value": plan_json.value_of(did),
            "reason": did.reason,
            "undo": one.step.undo,
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
    if one.errno is not None:
        record["errno"] = one.errno
    if one.detail:
        record["detail"] = one.detail
    if one.contested:
        record["contested"] = True
    return record


def _quantiles(samples: recent.Recent) -> dict[str, float]:
    found = ((name, samples.quantile(share)) for name, share in _SHARES)
    return {name: value for name, value in found if value is not None}
