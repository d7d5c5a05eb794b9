"""PodDisruptionBudgets: whose leaving would break one.

Covers: the budget as the scheduler sees it, which pods it covers, the order of a reprieve; what was
taken of budgets and is not in their status yet.
Does not cover: its status where there is no controller (``scheduler.standalone.budgets``), choosing
victims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.pods import Pod, PodClass

#: Seconds for which an API server remembers an eviction that nobody has confirmed.
_REMEMBERED = 120.0


@dataclass(slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget: how many more of its pods may go."""

    namespace: str
    selector: selectors.Compiled | None
    allowed: int
    #: Names that are on their way out and counted already.
    disrupted: frozenset[str] = frozenset()
    #: By UID those whose leaving was decided here and is not counted yet, and when.
    taken: dict[str, float] = field(default_factory=dict)

    def means(self, pod_class: PodClass) -> bool:
        """Whether it protects pods of a class; an empty selector protects nobody here."""
        wanted = self.selector.labels if self.selector is not None else ()
        named = self.namespace == pod_class.namespace and bool(wanted and pod_class.labels)
        return named and terms.holds(self.selector, pod_class.labels)


def take(budgets: Iterable[DisruptionBudget], victims: Collection[Pod], now: float = 0.0) -> None:
    """Victims are sent away: each is one less that a budget allows, until its status has it."""
    for budget in budgets:
        for pod in victims:
            if pod.name not in budget.disrupted and budget.means(pod.pod_class):
                budget.taken[pod.uid] = now


class DisruptionBudgets:
    """All budgets by name, as the store shows them, less what was taken and does not show yet.

    A victim counts until the status is written anew after the store has shown that it ends: its
    controller counts it from then on. One that never shows in a status (it was not healthy) counts
    for as long as the API server remembers an eviction.
    """

    def __init__(self) -> None:
        self._known: dict[str, DisruptionBudget] = {}
        #: Victims of whom the store has yet to show that they end.
        self._unseen: set[str] = set()

    def put(self, name: str, new: DisruptionBudget | None) -> None:
        """A budget comes, changes or goes."""
        old = self._known.pop(name, None)
        if new is None:
            return
        if old is not None:
            new.taken |= {uid: at for uid, at in old.taken.items() if uid in self._unseen}
        self._known[name] = new

    def take(self, victims: Collection[Pod], now: float) -> None:
        """These are sent away."""
        self._unseen.update(victim.uid for victim in victims)
        take(self._known.values(), victims, now)

    def ends(self, uid: str) -> None:
        """The store shows that a pod is ending, or gone."""
        self._unseen.discard(uid)

    def spare(self, uid: str) -> None:
        """A victim stays after all."""
        self._unseen.discard(uid)
        for budget in self._known.values():
            budget.taken.pop(uid, None)

    def at(self, now: float) -> Iterator[DisruptionBudget]:
        """All of them at a moment."""
        for budget in self._known.values():
            old = {uid for uid, at in budget.taken.items() if now - at > _REMEMBERED}
            for uid in old - self._unseen:
                del budget.taken[uid]
            yield budget


class Protection:
    """All budgets at one moment; each is asked once for each class of its namespace."""

    def __init__(self, budgets: Sequence[DisruptionBudget]) -> None:
        self._budgets = budgets
        self._by_space: dict[str, list[int]] = {}
        for place, budget in enumerate(budgets):
            self._by_space.setdefault(budget.namespace, []).append(place)
        self._known: dict[PodClass, tuple[int, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def of(self, pod_class: PodClass) -> tuple[int, ...]:
        """The places of the budgets that cover a class."""
        known = self._known.get(pod_class)
        if known is None:
            places = self._by_space.get(pod_class.namespace, ())
            known = tuple(place for place in places if self._budgets[place].means(pod_class))
            self._known[pod_class] = known
        return known

    def split(self, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Those whose leaving would break a budget, and the others, in the given order."""
        left: dict[int, int] = {}
        violating: list[Pod] = []
        others: list[Pod] = []
        for pod in pods:
            broken = False
            for place in self.of(pod.pod_class):
                budget = self._budgets[place]
                if pod.name not in budget.disrupted and pod.uid not in budget.taken:
                    left[place] = left.get(place, budget.allowed - len(budget.taken)) - 1
                    broken |= left[place] < 0
            (violating if broken else others).append(pod)
        return violating, others
