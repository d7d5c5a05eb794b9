"""Strategies about a pod and its node: affinity and taints that came to be violated.

Covers: RemovePodsViolatingNodeAffinity, RemovePodsViolatingNodeTaints. Does not cover: other pods.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.plugins import node as node_plugins

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class RemovePodsViolatingNodeAffinity:
    """Pods whose node they would not get today, or that would get a better one.

    The better node is one that the pod fits, which the peer does not ask.
    """

    name = "RemovePodsViolatingNodeAffinity"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        self._types = fields.texts("nodeAffinityType")
        if not self._types:
            fields.fail("nodeAffinityType", "is needed", f"name {REQUIRED}, {PREFERRED} or both")
        for kind in self._types:
            if kind not in {REQUIRED, PREFERRED}:
                fields.fail("nodeAffinityType", f"{kind!r} is neither {REQUIRED} nor {PREFERRED}")
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Type by type, node by node."""
        for kind in self._types:
            of = self._required if kind == REQUIRED else self._preferred
            yield from rounds.per_node(scene.rows, functools.partial(of, scene))

    def _required(self, scene: rounds.Scene, row: int) -> Iterator[rounds.Intent]:
        columns = scene.state.columns

        def meant(resident: Resident) -> bool:
            pod_class = resident.pod.pod_class
            if pod_class.required is None or not self._pods.admits(pod_class):
                return False
            return not node_plugins.matching(pod_class, columns)[row]

        for resident in scene.evictable(row, meant):
            if (target := scene.landing.best(resident, scene.rows)) >= 0:
                reason = "its node does not match its required node affinity any more"
                yield rounds.Intent(resident, reason, target)

    def _preferred(self, scene: rounds.Scene, row: int) -> Iterator[rounds.Intent]:
        columns = scene.state.columns
        weights: dict[PodClass, list[int]] = {}

        def meant(resident: Resident) -> bool:
            pod_class = resident.pod.pod_class
            return bool(pod_class.preferred) and self._pods.admits(pod_class)

        scope = set(scene.rows)
        for resident in scene.evictable(row, meant):
            pod_class = resident.pod.pod_class
            known = weights.get(pod_class)
            if known is None:
                known = [0] * columns.size
                for weight, term in pod_class.preferred:
                    for place in columns.index.term(term).nonzero()[0].tolist():
                        known[place] += weight
                weights[pod_class] = known
            if max((known[each] for each in scope), default=0) <= known[row]:
                continue
            feasible = [each for each in scene.landing.feasible(resident).tolist() if each in scope]
            best = max(feasible, key=lambda each: (known[each], -each), default=-1)
            if best >= 0 and known[best] > known[row]:
                reason = (
                    f"its preferred node affinity weighs {known[row]} on its node and {known[best]}"
                    f" on node {scene.state.node(best).name}"
                )
                yield rounds.Intent(resident, reason, best)


class RemovePodsViolatingNodeTaints:
    """Pods that do not tolerate a taint of their node; NoExecute is the taint manager's."""

    name = "RemovePodsViolatingNodeTaints"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        self._effects = {"NoSchedule"}
        if fields.flag("includePreferNoSchedule"):
            self._effects.add("PreferNoSchedule")
        self._excluded = frozenset(fields.texts("excludedTaints"))
        included = fields.texts("includedTaints")
        self._included = frozenset(included) if included else None
        if self._excluded and included:
            fields.fail(
                "includedTaints", "only one of includedTaints and excludedTaints can be set"
            )
        fields.done()

    def _counts(self, taint: terms.Taint) -> bool:
        names = {taint.key, *((f"{taint.key}={taint.value}",) if taint.value else ())}
        return (
            taint.effect in self._effects
            and not names & self._excluded
            and (self._included is None or bool(names & self._included))
        )

    def _of(self, scene: rounds.Scene, row: int) -> Iterator[rounds.Intent]:
        taints = [taint for taint in scene.state.node(row).taints if self._counts(taint)]
        if not taints:
            return

        def violated(pod_class: PodClass) -> terms.Taint | None:
            several = (t for t in taints if not terms.tolerated(pod_class.tolerations, t))
            return next(several, None)

        def meant(resident: Resident) -> bool:
            pod_class = resident.pod.pod_class
            return violated(pod_class) is not None and self._pods.admits(pod_class)

        for resident in scene.evictable(row, meant):
            taint = violated(resident.pod.pod_class)
            assert taint is not None  # noqa: S101 -- it was chosen for it
            spelled = f"{taint.key}={taint.value}:{taint.effect}"
            yield rounds.Intent(resident, f"it does not tolerate taint {spelled} of its node")

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        return rounds.per_node(scene.rows, lambda row: self._of(scene, row))
