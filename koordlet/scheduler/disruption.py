"""PodDisruptionBudgets: whose leaving would break one.

Covers: the budget as the scheduler sees it, which pods it covers, the order of a reprieve.
Does not cover: its status where there is no controller (``alone.budgets``), choosing victims.
"""

from __future__ import annotations

from collections.abc import Sequence

from koordlet.model import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler import terms
from koordlet.scheduler.pods import Pod, PodClass


@dataclass(slots=True)
class Budget:
    """A PodDisruptionBudget: how many more of its pods may go."""

    namespace: str
    selector: selectors.Compiled | None
    allowed: int
    #: Names that are on their way out and counted already.
    disrupted: frozenset[str] = frozenset()

    def means(self, sort: PodClass) -> bool:
        """Whether it protects pods of a class; an empty selector protects nobody here."""
        return (
            self.namespace == sort.namespace
            and self.selector is not None
            and bool(self.selector.labels)
            and bool(sort.labels)
            and terms.holds(self.selector, sort.labels)
        )


class Protection:
    """All budgets at one moment; each is asked once for each class of its namespace."""

    def __init__(self, budgets: Sequence[Budget]) -> None:
        self._budgets = budgets
        self._by_space: dict[str, list[int]] = {}
        for place, budget in enumerate(budgets):
            self._by_space.setdefault(budget.namespace, []).append(place)
        self._known: dict[PodClass, tuple[int, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def of(self, sort: PodClass) -> tuple[int, ...]:
        """The places of the budgets that mean a class."""
        known = self._known.get(sort)
        if known is None:
            several = self._by_space.get(sort.namespace, ())
            known = tuple(one for one in several if self._budgets[one].means(sort))
            self._known[sort] = known
        return known

    def split(self, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Those whose leaving would break a budget, and the others, in the given order."""
        left: dict[int, int] = {}
        violating: list[Pod] = []
        others: list[Pod] = []
        for pod in pods:
            broken = False
            for place in self.of(pod.sort):
                budget = self._budgets[place]
                if pod.name not in budget.disrupted:
                    left[place] = left.get(place, budget.allowed) - 1
                    broken |= left[place] < 0
            (violating if broken else others).append(pod)
        return violating, others
