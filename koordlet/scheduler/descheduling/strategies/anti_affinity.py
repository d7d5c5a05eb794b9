"""RemovePodsViolatingInterPodAntiAffinity: pods beside others that they must not be beside.

Covers: a pod's own required terms against the other pods of its topology domains. Does not cover:
what others demand of it.

The pods of each domain are counted by class, so that a pod costs its terms and not its neighbours.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from koordlet.scheduler.descheduling import order, selection
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.terms import PodTerm


class _Domains:
    """How many pods of each class there are in each domain of a topology."""

    def __init__(self, scene: rounds.Scene, pods: selection.PodSelection) -> None:
        self._columns = scene.state.columns
        self._namespaces = self._columns.namespaces
        self._by_row: dict[int, Counter[PodClass]] = {}
        for row in scene.rows:
            residents = scene.state.residents(row)
            classes = (resident.pod.pod_class for resident in residents)
            self._by_row[row] = Counter(each for each in classes if pods.admits(each))
        self._known: dict[str, dict[int, Counter[PodClass]]] = {}
        self._meant: dict[tuple[int, PodClass], bool] = {}

    def _topology(self, key: str) -> dict[int, Counter[PodClass]]:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = defaultdict(Counter)
            ids = self._columns.index.label(key).ids
            for row, counts in self._by_row.items():
                if ids[row] >= 0:
                    known[int(ids[row])].update(counts)
        return known

    def violates(self, pod_class: PodClass, row: int) -> PodTerm | None:
        """The first term that another pod of the same domain meets."""
        for term in pod_class.anti_affinity:
            domain = int(self._columns.index.label(term.key).ids[row])
            if domain < 0:
                continue
            for other, count in self._topology(term.key)[domain].items():
                if count - (other is pod_class) > 0 and self._means(term, other):
                    return term
        return None

    def _means(self, term: PodTerm, other: PodClass) -> bool:
        key = id(term), other
        known = self._meant.get(key)
        if known is None:
            known = term.matches(other.namespace, other.labels, self._namespaces)
            self._meant[key] = known
        return known

    def gone(self, pod_class: PodClass, row: int) -> None:
        """A pod counts no longer."""
        self._by_row[row][pod_class] -= 1
        for key, domains in self._known.items():
            domain = int(self._columns.index.label(key).ids[row])
            if domain >= 0:
                domains[domain][pod_class] -= 1


class RemovePodsViolatingInterPodAntiAffinity:
    """Least important first, each until the rest gets along."""

    name = "RemovePodsViolatingInterPodAntiAffinity"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        domains = _Domains(scene, self._pods)
        for row in scene.rows:
            several = [
                resident
                for resident in scene.state.residents(row)
                if resident.pod.pod_class.anti_affinity
                and self._pods.admits(resident.pod.pod_class)
            ]
            for resident in order.least_first(several, scene.judge):
                pod_class = resident.pod.pod_class
                term = domains.violates(pod_class, row)
                if term is None or not scene.judge.allows(resident):
                    continue
                reason = f"its required anti-affinity over {term.key} is violated"
                answer = yield rounds.Intent(resident, reason)
                if answer.evicted:
                    domains.gone(pod_class, row)
                elif answer is EvictionAnswer.NODE_LIMIT:
                    break
