"""The plan document of the contract, from a plan. Pure.

Covers: ``koordlet plan -o json`` and ``/api/v1/plan``. Does not cover: tables (``cli.plan``).
"""

from __future__ import annotations

from typing import Any

from koordlet.model import action, decision, eviction, plan, result
from koordlet.report import documents

#: What ``writes`` repeats of an action, after its path.
_WRITE = ("value", "was", "policy", "reason", "order")


def render(made: plan.Plan, results: tuple[result.Result, ...] = ()) -> dict[str, Any]:
    """The whole document. ``writes`` is the ``WriteFile`` part of ``actions``."""
    actions = [described(step) for step in made.steps]
    return {
        "version": "v1",
        "actions": actions,
        "writes": [
            {"path": step["target"], **{key: step[key] for key in _WRITE}}
            for step in actions
            if step["kind"] == action.WriteFile.__name__
        ],
        "evictions": [_eviction(victim) for victim in made.evictions],
        "signals": [signal(row) for row in made.signals],
        "conditions": [condition(row) for row in made.conditions],
        "unsupported": documents.each(made.unsupported, "feature why"),
        "pools": pools(made),
        "conflicts": documents.each(
            made.conflicts, "target kept kept_policy dropped dropped_policy"
        ),
        "failures": documents.each(made.failures, "policy error"),
        "shadow": list(made.shadow),
        "explanations": {stem: dict(facts) for stem, facts in made.explanations.items()},
        "results": [outcome(row) for row in results],
    }


def condition(row: decision.Condition) -> dict[str, object]:
    """Something that holds of the node or of one subject, or does not."""
    document = documents.fields(row, "type status reason message subject")
    return {**document, "status": str(row.status)}


def signal(row: decision.Signal) -> dict[str, object]:
    """Something measured against a threshold."""
    more = {"why": row.why or None, "spelled": row.spelled or None, "since": row.since}
    known = {name: value for name, value in more.items() if value is not None}
    return {**documents.fields(row, "name observed threshold met"), **known}


def pools(made: plan.Plan) -> dict[str, object]:
    """Owners of CPUs."""
    return {
        "claims": documents.each(made.ledger.claims, "owner cpus holder policy reason since"),
        "shared": documents.each(made.ledger.pools, "kind socket node cpus"),
    }


def outcome(row: result.Result) -> dict[str, object]:
    """One result."""
    more = {"detail": row.detail, "contested": row.contested}
    known = {name: value for name, value in more.items() if value}
    return {**documents.fields(row, "target verdict"), **known}


def _eviction(victim: eviction.Eviction) -> dict[str, object]:
    return {
        **documents.fields(
            victim, "pod signal reason message policy observed threshold grace_seconds held"
        ),
        "ranking": [
            {
                **documents.fields(each, "pod"),
                "keys": dict(each.keys),
                **({"spared": each.spared} if each.spared else {}),
            }
            for each in victim.ranking
        ],
    }


def value_of(deed: action.Action) -> str | None:
    """New value of an action, as text."""
    if isinstance(deed, action.WriteFile | action.SetUnitProperty | action.SetQdisc):
        return deed.value
    if isinstance(deed, action.Reclaim):
        return str(deed.amount_bytes)
    return _of_processes(deed)


def _of_processes(deed: action.Action) -> str | None:
    if isinstance(deed, action.ShareCore):
        return "no cookie" if deed.gone else f"one cookie for {len(deed.members)} processes"
    if isinstance(deed, action.SetRealTime):
        return "ordinary" if deed.back else f"real-time, {deed.threads} more threads"
    if isinstance(deed, action.MoveTasks):
        pids = deed.pids
        return f"{len(pids)} threads" if deed.taken_from else " ".join(map(str, pids))
    return None


def described(step: plan.Step) -> dict[str, object]:
    """One action."""
    deed = step.action
    return {
        "order": step.order,
        "kind": action.kind(deed),
        "target": deed.target,
        "value": value_of(deed),
        "was": step.was,
        **documents.fields(deed, "policy reason"),
        **documents.fields(step, "mode undo interim"),
    }
