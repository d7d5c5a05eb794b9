"""The domains of a topology key: nodes of which all members of a gang must share one.

Covers: nodes by the value of a label, the domain of members that are bound, which domain is the
best. Does not cover: deciding in a domain (``attempt``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial, GroupTrials
from koordlet.scheduler.objects.pods import Pod

_ELSEWHERE = Verdict(("node(s) are outside of the pod group's topology domain",), resolvable=False)


def domains(columns: Columns, key: str, bound: Iterable[tuple[str, str]]) -> dict[str, set[int]]:
    """The rows of each domain, by name; where members are ``bound``, of theirs alone.

    ``bound``: keys of pods with their nodes. ``ValueError`` where they are in two domains or none.
    """
    by_value: dict[str, set[int]] = {}
    for place, each in enumerate(columns.nodes):
        if each is not None and key in each.labels:
            by_value.setdefault(each.labels[key], set()).add(place)
    own: set[str] = set()
    for pod, name in bound:
        row = columns.rows.get(name)
        node = None if row is None else columns.nodes[row]
        if node is None or key not in node.labels:
            raise ValueError(f"no topology domain found for pod {pod}")
        own.add(node.labels[key])
    if len(own) > 1:
        raise ValueError(f"more than 1 domain found for pod group: {', '.join(sorted(own))}")
    return {value: rows for value, rows in sorted(by_value.items()) if not own or value in own}


def outside(columns: Columns, rows: Collection[int]) -> dict[int, Verdict]:
    """The nodes that are in no domain of these rows, and why they are refused."""
    return {row: _ELSEWHERE for row in columns.rows.values() if row not in rows}


def attempt(
    cycle: GroupTrials,
    columns: Columns,
    key: str,
    members: list[Pod],
    bound: Iterable[tuple[str, str]],
) -> GroupTrial:
    """Decide in the domain that takes the most members, of equals in the first by name."""
    try:
        by_value = domains(columns, key, bound)
    except ValueError as error:
        return GroupTrial(failed=[FailedMember(members[0], str(error), error=True)])
    best: tuple[tuple[bool, int], Mapping[int, Verdict]] | None = None
    for rows in by_value.values():
        elsewhere = outside(columns, rows)
        cycle.confine(elsewhere)
        trial = cycle.decide(members)
        cycle.take_back(trial)
        score = trial.enough, len(trial.binds)
        if best is None or score > best[0]:
            best = score, elsewhere
    if best is None:
        message = f"no node has the label {key}: 0/0 placements are available"
        return GroupTrial(failed=[FailedMember(members[0], message, error=True)])
    cycle.confine(best[1])
    trial = cycle.decide(members)
    if trial.failed and not trial.enough:
        first = trial.failed[0]
        words = f"0/{len(by_value)} placements are available, first placement status"
        trial.failed[0] = replace(first, message=f"{words}: {first.message}")
    return trial
