"""The domains of a topology key: nodes of which all members of a gang must share one.

Covers: nodes by the value of a label, the domain of members that are bound. Does not cover:
deciding in a domain, and which domain is the best (``attempt``).
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Verdict

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


def outside(columns: Columns, rows: set[int]) -> dict[int, Verdict]:
    """The nodes that are in no domain of these rows, and why they are refused."""
    return {row: _ELSEWHERE for row in columns.rows.values() if row not in rows}
