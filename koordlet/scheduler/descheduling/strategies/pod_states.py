"""Strategies that look at one pod alone: its age, its restarts, its failure.

Covers: PodLifeTime, RemovePodsHavingTooManyRestarts, RemoveFailedPods. Does not cover: pods beside
others (the other modules).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from koordlet.kubeapi import shapes
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.traits import ContainerState, PodTraits, Resident
from koordlet.scheduler.objects.pods import PodClass

_PHASES = ("Running", "Pending", "Succeeded", "Failed", "Unknown")
_STATES = (
    *_PHASES,
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff"),
    *("CreateContainerConfigError", "ErrImagePull", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun"),
    "StartError",
)
#: For so long the workload of a pod that restarts too often avoids its node.
_AVOIDS = 3600.0
_RESTART_STATES = ("Running", "CrashLoopBackOff")
_exit_codes = shapes.listing(shapes.integer(-(2**31), 2**31 - 1))


def _words(fields: Fields, key: str, known: tuple[str, ...]) -> frozenset[str]:
    words = fields.texts(key)
    if stray := [word for word in words if word not in known]:
        fields.fail(key, f"{stray[0]!r} is none of {', '.join(sorted(known))}")
    return frozenset(words)


def _containers(
    traits: PodTraits, *, init: bool, ephemeral: bool = False
) -> Iterable[ContainerState]:
    kinds = {"", *(("init",) if init else ()), *(("ephemeral",) if ephemeral else ())}
    return (container for container in traits.containers if container.kind in kinds)


def _exited(containers: Iterable[ContainerState], codes: Collection[int]) -> bool:
    return any(container.exit_code in codes for container in containers)


@dataclass(frozen=True, slots=True)
class ConditionFilter:
    """A condition that a pod must have; what is empty is not asked."""

    type: str
    status: str
    reason: str
    least_seconds: int | None

    def matches(self, traits: PodTraits, now: float) -> bool:
        """Whether any condition of a pod is meant."""
        return any(
            self.type in {"", condition.type}
            and self.status in {"", condition.status}
            and self.reason in {"", condition.reason}
            and (
                self.least_seconds is None
                or (condition.since > 0 and now - condition.since >= self.least_seconds)
            )
            for condition in traits.conditions
        )


class PodLifeTime:
    """Pods that are too old, or in a state for too long; the oldest of the cluster first."""

    name = "PodLifeTime"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        self._owners = selection.choice(fields, "ownerKinds")
        self._longest = fields.whole("maxPodLifeTimeSeconds")
        self._states = _words(fields, "states", _STATES)
        self._init = fields.flag("includingInitContainers")
        self._ephemeral = fields.flag("includingEphemeralContainers")
        self._conditions = [_condition(child) for child in fields.children("conditions")]
        self._codes = frozenset(fields.read("exitCodes", _exit_codes, ()))
        fields.done()
        if self._longest is None and not (self._states or self._conditions or self._codes):
            fields.fail(
                "",
                "at least one filtering criterion must be specified",
                "set maxPodLifeTimeSeconds, states, conditions or exitCodes",
            )

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """All pods that match every group that is given."""
        now = scene.state.now.wall
        chosen = [
            resident
            for row in scene.rows
            for resident in scene.evictable(row, lambda each: self._meant(each, now), ended=True)
        ]
        chosen.sort(key=lambda resident: resident.traits.created)
        full: set[int] = set()
        for resident in chosen:
            if resident.row in full:
                continue
            age = int(now - resident.traits.created)
            answer = yield rounds.Intent(resident, f"pod is {age} s old")
            if answer is EvictionAnswer.NODE_LIMIT:
                full.add(resident.row)

    def _owned(self, pod_class: PodClass) -> bool:
        """Whether the owners of a pod are of the kinds that count."""
        kinds = {reference.kind for reference in pod_class.references}
        if self._owners.include and not kinds & self._owners.include:
            return False
        return not kinds & self._owners.exclude

    def _meant(self, resident: Resident, now: float) -> bool:
        traits, pod_class = resident.traits, resident.pod.pod_class
        if self._longest is not None and not int(now - traits.created) > self._longest:
            return False
        if not (self._pods.admits(pod_class) and self._owned(pod_class)):
            return False
        if self._states and not self._in_state(traits):
            return False
        if self._conditions and not any(each.matches(traits, now) for each in self._conditions):
            return False
        return not self._codes or _exited(_containers(traits, init=self._init), self._codes)

    def _in_state(self, traits: PodTraits) -> bool:
        several = _containers(traits, init=self._init, ephemeral=self._ephemeral)
        words = {traits.phase, traits.reason}
        words.update(
            reason for container in several for reason in (container.waiting, container.terminated)
        )
        return bool(words & self._states)


def _condition(fields: Fields) -> ConditionFilter:
    condition = ConditionFilter(
        fields.text("type"),
        fields.text("status"),
        fields.text("reason"),
        fields.whole("minTimeSinceLastTransitionSeconds"),
    )
    if condition == ConditionFilter("", "", "", None):
        fields.fail(
            "",
            "at least one of type, status, reason, or minTimeSinceLastTransitionSeconds is needed",
        )
    fields.done()
    return condition


class RemovePodsHavingTooManyRestarts:
    """Pods whose containers begin again and again; of a node the most restarts first."""

    name = "RemovePodsHavingTooManyRestarts"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        self._threshold = fields.count("podRestartThreshold", 0)
        if self._threshold < 1:
            fields.fail("podRestartThreshold", "must be at least 1")
        self._init = fields.flag("includingInitContainers")
        self._states = _words(fields, "states", _RESTART_STATES)
        fields.done()

    def _restarts(self, resident: Resident) -> int:
        several = _containers(resident.traits, init=self._init)
        return sum(container.restarts for container in several)

    def _meant(self, resident: Resident) -> bool:
        if self._restarts(resident) < self._threshold:
            return False
        if not self._pods.admits(resident.pod.pod_class):
            return False
        if not self._states or resident.traits.phase in self._states:
            return True
        several = _containers(resident.traits, init=self._init)
        return any(container.waiting in self._states for container in several)

    def _of(self, scene: rounds.Scene, row: int) -> Iterator[rounds.Intent]:
        several = scene.evictable(row, self._meant, ended=True)
        for resident in sorted(several, key=self._restarts, reverse=True):
            restarts = self._restarts(resident)
            text = f"containers restarted {restarts} times, at most {self._threshold - 1}"
            yield rounds.Intent(resident, text, avoid_seconds=_AVOIDS)

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        return rounds.per_node(scene.rows, lambda row: self._of(scene, row))


class RemoveFailedPods:
    """Pods that have failed for some reason."""

    name = "RemoveFailedPods"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        self._least = fields.whole("minPodLifetimeSeconds", 3600)
        self._reasons = frozenset(fields.texts("reasons"))
        self._codes = frozenset(fields.read("exitCodes", _exit_codes, ()))
        self._init = fields.flag("includingInitContainers")
        self._kinds = frozenset(fields.texts("excludeOwnerKinds"))
        fields.done()

    def _meant(self, resident: Resident, now: float) -> bool:
        traits, pod_class = resident.traits, resident.pod.pod_class
        if traits.phase != "Failed" or not self._pods.admits(pod_class):
            return False
        if self._least is not None and now - traits.created < self._least:
            return False
        if any(reference.kind in self._kinds for reference in pod_class.references):
            return False
        several = list(_containers(traits, init=self._init))
        words = {traits.reason, *(container.waiting for container in several)}
        words |= {container.terminated for container in several}
        if self._reasons and not (words - {""}) & self._reasons:
            return False
        return not self._codes or _exited(several, self._codes)

    def _of(self, scene: rounds.Scene, row: int) -> Iterator[rounds.Intent]:
        now = scene.state.now.wall
        for resident in scene.evictable(row, lambda each: self._meant(each, now), ended=True):
            yield rounds.Intent(resident, f"pod failed: {resident.traits.reason or 'no reason'}")

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        return rounds.per_node(scene.rows, lambda row: self._of(scene, row))
