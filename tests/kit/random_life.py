"""A small cluster in which pods come and go and nodes change, and the cycle that saw all of it."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit.clusters import Body

_LEAVES, _CHANGES = 0.4, 0.1


def live(
    chance: random.Random, made: list[Body], sorts: list[Body], steps: int
) -> Iterator[tuple[Cycle, list[Pod]]]:
    """The cycle, and one pod of each sort that waits, after each step."""
    loaded = inventory.load([*made, *sorts])
    columns, placed = loaded.columns, []
    kept = Cycle(columns, profile.default())
    for step in range(steps):
        template = chance.choice(loaded.pending)
        again = dataclasses.replace(template, name=f"{template.name}-{step}")
        row = kept.choose(again)
        if row >= 0:
            columns.place(again, row)
            placed.append(again)
        if placed and chance.random() < _LEAVES:
            columns.remove(placed.pop(chance.randrange(len(placed))))
        if chance.random() < _CHANGES:
            changed = chance.choice(made)
            changed["metadata"]["labels"]["zone"] = f"z{chance.randrange(4)}"
            columns.put(nodes.decode(changed))
        yield kept, loaded.pending
