"""BetterAffinity: moves pods whose preferences another node fulfils better.

Covers: preferred node affinity, preferred pod affinity and anti-affinity. Does not cover: what is
required (``node_rules``, ``anti_affinity``), spreading (``topology_spread``).

Rules:
1. A node is worth the sums that the scheduler's own plugins make of these preferences, before they
   are scaled to 100. The gain is the difference of two nodes, divided by the weights of the pod's
   own preferences.
2. A pod goes to the node that the scheduler would choose for it now by all of its scores, its own
   node among them, where the gain of that is large enough in several rounds in a row. The dial
   ``aggressiveness`` says how large and how many, unless arguments do.
3. At most ``MOST`` pods go in a round, the largest gain first; each is judged again at its turn.
4. It only shows what it would do unless ``dryRun: false``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from koordlet.kubeapi import shapes
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.framework import view as views
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.plugins.inter_pod_affinity import Preferred
from koordlet.scheduler.plugins.node import PreferredAffinity

MOST = 5


@dataclass(frozen=True, slots=True)
class _Better:
    """The node that a pod should have, and what both are worth to it."""

    target: int
    here: int
    there: int
    gain: float


class BetterAffinity:
    """The strategy."""

    name = "BetterAffinity"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields, dry_run=True)
        self._gain = fields.read("minGain", shapes.number(0, 1))
        self._rounds = fields.whole("consecutiveRounds", low=1)
        fields.done()
        #: In how many rounds in a row a pod was seen to be better off elsewhere, by UID.
        self._seen: Mapping[str, int] = {}

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """The largest gain first."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        needed = self._rounds or scene.state.aggressiveness.rounds
        gains = {
            resident.pod.uid: (-better.gain, resident.pod.key, resident)
            for row in self._settings.rows(scene)
            for resident in scene.evictable(row, self._looks_at)
            if (better := self._better(scene, resident)) is not None
        }
        self._seen = {uid: self._seen.get(uid, 0) + 1 for uid in gains}
        due = [gain for uid, gain in gains.items() if self._seen[uid] >= needed]
        if len(due) < len(gains):
            early = len(gains) - len(due)
            scene.note(
                f"{early} pods are better off elsewhere, not often enough in a row ({needed})"
            )
        moved = 0
        for _, _, resident in sorted(due, key=lambda gain: gain[:2]):
            better = self._better(scene, resident)
            if better is None:
                continue
            reason = (
                f"its preferences are worth {better.here} here and {better.there} on"
                f" {scene.state.node(better.target).name}: gain {better.gain:.2f}"
            )
            shadow = self._settings.dry_run
            answer = yield rounds.Intent(resident, reason, better.target, shadow=shadow)
            moved += answer.evicted
            if moved == MOST:
                scene.note(f"{MOST} pods in a round, and no more")
                return

    def _looks_at(self, resident: Resident) -> bool:
        return bool(_weight(resident.pod.pod_class)) and self._settings.wants(resident)

    def _better(self, scene: rounds.Scene, resident: Resident) -> _Better | None:
        """The node that a pod should have (rule 2); ``None``: its own."""
        with scene.landing.sight(resident) as view:
            scored = scene.landing.scored(view)
            (here,) = np.nonzero(scored.rows == resident.row)
            if not here.size:
                return None  # what keeps it from its own node is no matter of preference
            best = int(scored.totals.argmax())
            worth = _worth(view, scored.rows[[here[0], best]])
        gain = int(worth[1] - worth[0]) / _weight(resident.pod.pod_class)
        least = scene.state.aggressiveness.gain if self._gain is None else self._gain
        if gain < least or gain <= 0:
            return None
        return _Better(int(scored.rows[best]), int(worth[0]), int(worth[1]), gain)


def _weight(pod_class: PodClass) -> int:
    """The weights of all preferences of a pod."""
    wishes = (*pod_class.preferred, *pod_class.prefers, *pod_class.avoids)
    return sum(weight for weight, _ in wishes)


def _worth(view: views.View, rows: Rows) -> Ints:
    """What nodes are worth by the preferences alone (rule 1)."""
    worth = np.zeros(rows.size, np.int64)
    for _, _, score in view.scores:
        if isinstance(score, PreferredAffinity):
            worth += score.raw(rows)
        elif isinstance(score, Preferred):
            worth += score.sums(rows)
    return worth
