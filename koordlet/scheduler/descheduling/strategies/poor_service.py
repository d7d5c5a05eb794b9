"""PoorService: pods that their node serves badly, while others of their workload do well elsewhere.

Covers: crash loops, images and volumes that do not come, containers that the node's lack of memory
kills. Does not cover: pods that restart everywhere, which no other node helps (``pod_states``),
pods that ended on a node (``bad_placements``), load (``low_node_load``).

Rules:
1. Of a crash loop: ``RESTARTS`` restarts within ``LOOP_SECONDS``, or since the round before where
   that is longer, while at least half of the other pods of the workload have restarted less than
   twice. How many there were before, a round has to have seen, unless the pod is younger than that.
2. Of an image or a volume: the pod is not ready for ``STUCK_SECONDS``, and a container waits for
   one of them, while another pod of the workload is up on another node, and none waits there so.
3. Of both, a pod without others of its workload stays: nobody knows whether it is the node.
4. Of lack of memory: ``OOMS`` kills within ``OOM_SECONDS`` of containers without a memory limit.
   What dies at its own limit does so on any node.
5. Its workload avoids the node afterwards, two hours after a crash loop, else one.
6. Nobody leaves for what ended on a node: its workload only avoids the node (``bad_placements``).
7. It only shows what it would do unless ``dryRun: false``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import bad_placements, candidates
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.disruption import workloads
from koordlet.scheduler.objects.pods import Pod

RESTARTS, LOOP_SECONDS, STUCK_SECONDS = 5, 1800.0, 900.0
OOMS, OOM_SECONDS = 2, 3600.0
_HOUR = 3600.0
#: What a container waits for, where an image or a volume does not come.
_WAITS = frozenset({"ContainerCreating", "ErrImagePull", "ImagePullBackOff"})
#: Moments, and the restarts until then; the oldest first.
_History = tuple[tuple[float, int], ...]


class PoorService:
    """The strategy."""

    name = "PoorService"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields, dry_run=True)
        fields.done()
        #: By UID, of pods that have restarted.
        self._histories: Mapping[str, _History] = {}
        #: By UID, when lack of a node's memory killed containers.
        self._ooms: Mapping[str, frozenset[float]] = {}

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        now = scene.state.now.wall
        self._histories = {
            traits.uid: self._history(traits, now)
            for traits in scene.state.traits.values()
            if _restarts(traits)
        }
        self._ooms = {
            traits.uid: kills
            for traits in scene.state.traits.values()
            if (kills := self._kills(traits, now))
        }
        rows = self._settings.rows(scene)
        yield from rounds.per_node(rows, lambda row: self._of(scene, row))

    def _history(self, traits: PodTraits, now: float) -> _History:
        """What was seen of a pod within the window; before its beginning it had restarted never."""
        known = self._histories.get(traits.uid, ())
        seen = known or ((traits.created, 0),)
        kept = tuple(look for look in seen if now - look[0] < LOOP_SECONDS)
        return (*(kept or known[-1:]), (now, _restarts(traits)))

    def _kills(self, traits: PodTraits, now: float) -> frozenset[float]:
        """The kills for lack of memory within the window; a status has only the last ones."""
        seen = traits.node_ooms | self._ooms.get(traits.uid, frozenset())
        return frozenset(at for at in seen if now - at < OOM_SECONDS)

    def _of(self, scene: rounds.Scene, row: int) -> Iterator[rounds.Intent]:
        yield from bad_placements.intents(scene.state, row, self._settings)
        for resident in scene.evictable(row, self._settings.wants):
            reason, avoid_seconds = self._reason(scene, resident)
            if reason:
                shadow = self._settings.dry_run
                yield rounds.Intent(resident, reason, shadow=shadow, avoid_seconds=avoid_seconds)

    def _reason(self, scene: rounds.Scene, resident: Resident) -> tuple[str, float]:
        """Why a pod is served badly, and for how long the node is avoided; empty: it is not."""
        now, traits = scene.state.now.wall, resident.traits
        several = self._histories.get(traits.uid, ())
        again = several[-1][1] - several[0][1] if several else 0
        if again >= RESTARTS:
            others = [traits for _, traits in _others(scene, resident)]
            well = sum(_restarts(other) < 2 for other in others)
            if others and 2 * well >= len(others):
                text = f"restarted {again} times of late, {well} of {len(others)} others do well"
                return text, 2 * _HOUR
        ooms = len(self._ooms.get(traits.uid, ()))
        if ooms >= OOMS:
            return (
                f"the node's lack of memory killed containers of it {ooms} times in an hour",
                _HOUR,
            )
        waits = _stuck(traits, now)
        if waits:
            away = [each for each in _others(scene, resident) if each[0].node != resident.pod.node]
            up = sum(pod.up for pod, _ in away)
            if up and not any(_stuck(other, now) for _, other in away):
                return f"{waits} for {STUCK_SECONDS / 60:.0f} minutes, {up} are up elsewhere", _HOUR
        return "", 0.0


def _restarts(traits: PodTraits) -> int:
    return sum(container.restarts for container in traits.containers)


def _stuck(traits: PodTraits, now: float) -> str:
    """For what a pod waits in vain; empty: it does not."""
    since = max((each.since for each in traits.conditions if each.type == "Ready"), default=0.0)
    if now - (since or traits.started or now) < STUCK_SECONDS:
        return ""
    return next((each.waiting for each in traits.containers if each.waiting in _WAITS), "")


def _others(scene: rounds.Scene, resident: Resident) -> list[tuple[Pod, PodTraits]]:
    """The other pods of a workload that have a node."""
    known = scene.state.workloads
    signature = known.signature(resident.pod.pod_class)
    if signature is None:
        return []
    return [
        (pod, traits)
        for pod in workloads.each(known.members(signature))
        if pod.uid != resident.pod.uid and (traits := scene.state.traits.get(pod.uid)) is not None
    ]
