"""Whether a pod may be evicted at all, by the rules of the evictor that is configured.

Covers: annotations, owners, priority, volumes, selectors, replicas, age. Does not cover: whether it
fits elsewhere (``landing``), how many may go (``limits``), the one limiter of all movers.

The checks are a list in order: the first that refuses is the reason; all that refuse are what
``explain`` shows. The words are upstream's.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.kubeapi import selectors
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.evictor_settings import (
    RESERVATION_FIRST,
    EvictorSettings,
    Protection,
)
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import NEVER, Resident
from koordlet.scheduler.disruption import limiter, workloads
from koordlet.scheduler.objects.pods import PodClass


class Evictability:
    """The judgement of one evictor over the pods of one round."""

    def __init__(self, settings: EvictorSettings, state: ClusterState) -> None:
        self.settings, self._state = settings, state
        # Looked up once: each pod asks for all of them.
        (
            self._local, self._critical, self._failed_bare, self._daemons,
            self._claimed, self._without_budget, self._resource_claims,
        ) = (protection in settings.protections for protection in Protection)  # fmt: skip
        self._threshold = self._priority()
        # Nearly all pods have nothing about them that any check asks for: these are not asked one
        # by one. What is left then depends on the class alone.
        self._usual = not (
            settings.min_replicas > 1
            or settings.min_age_seconds is not None
            or settings.migrates
            or self._without_budget
        )
        self._below = limiter.SYSTEM_CRITICAL
        if self._threshold is not None:
            self._below = min(self._below, self._threshold)
        self._plain: dict[PodClass, bool] = {}
        #: By UID the first reason, empty where there is none.
        self._known: dict[str, str] = {}

    def _priority(self) -> int | None:
        """The value of the threshold; a class that nobody knows protects every pod."""
        threshold = self.settings.threshold
        if threshold is None or (threshold.value is None and not threshold.name):
            return None
        if threshold.value is not None:
            return threshold.value
        return self._state.priorities.get(threshold.name, -(2**31))

    def refusal(self, resident: Resident) -> str:
        """Why a pod may not be evicted; empty where it may."""
        known = self._known.get(resident.pod.uid)
        if known is None:
            known = "" if self._is_plain(resident) else next(self.refusals(resident), "")
            self._known[resident.pod.uid] = known
        return known

    def _is_plain(self, resident: Resident) -> bool:
        """Whether no check has anything to ask of a pod."""
        traits, pod = resident.traits, resident.pod
        if (
            not self._usual
            or traits.marked
            or pod.terminating
            or pod.priority >= self._below
            or self._state.under_way(resident)
        ):
            return False
        pod_class = pod.pod_class
        plain = self._plain.get(pod_class)
        if plain is None:
            checks = (self._owners(resident), self._selected(resident))
            plain = bool(pod_class.references) and not any(True for each in checks for _ in each)
            self._plain[pod_class] = plain
        return plain

    def allows(self, resident: Resident) -> bool:
        """Whether a pod may be evicted."""
        return not self.refusal(resident)

    def refusals(self, resident: Resident) -> Iterator[str]:
        """All reasons, the first of them first."""
        if under_way := self._state.under_way(resident):
            yield under_way
        if resident.traits.evict:
            return
        for check in (
            *(self._wishes, self._kind, self._owners, self._priorities, self._volumes),
            *(self._selected, self._replicas, self._age, self._migration),
        ):
            yield from check(resident)

    def protection(self, resident: Resident) -> str:
        """Why a pod is not to be moved whoever asks: what it is, says and has, not its workload."""
        if resident.traits.evict:
            return ""
        checks = (self._wishes, self._kind, self._priorities, self._volumes, self._selected)
        return next((why for check in checks for why in check(resident)), "")

    def prefers_to_stay(self, resident: Resident) -> bool:
        """Whether it goes last among equals."""
        return resident.traits.prefers_none and not self.settings.mandatory

    def _wishes(self, resident: Resident) -> Iterator[str]:
        if resident.traits.prefers_none and self.settings.mandatory:
            yield "pod asks not to be evicted, and the no eviction policy is Mandatory"
        if resident.traits.eviction_cost >= NEVER and self.settings.migrates:
            yield "pod has the eviction cost that means never"

    def _kind(self, resident: Resident) -> Iterator[str]:
        if resident.traits.mirror:
            yield "pod is a mirror pod"
        if resident.traits.static:
            yield "pod is a static pod"
        if resident.pod.terminating:
            yield "pod is terminating"

    def _owners(self, resident: Resident) -> Iterator[str]:
        references = resident.pod.pod_class.references
        if not references and not self.settings.bare:
            if self._failed_bare:
                yield "pod does not have any ownerRefs"
            elif resident.traits.phase != "Failed":
                yield "pod does not have any ownerRefs and is not in failed phase"
        if self._daemons and any(reference.kind == "DaemonSet" for reference in references):
            yield "daemonset pods are protected against eviction"

    def _priorities(self, resident: Resident) -> Iterator[str]:
        priority = resident.pod.priority
        if self._critical and priority >= limiter.SYSTEM_CRITICAL:
            yield "pod has system critical priority and is protected against eviction"
        if self._threshold is not None and priority >= self._threshold:
            yield "pod has higher priority than specified priority class threshold"

    def _volumes(self, resident: Resident) -> Iterator[str]:
        traits, pod = resident.traits, resident.pod
        if self._local and traits.local_storage:
            yield "pod has local storage and is protected against eviction"
        if self._claimed and traits.claims:
            classes = self.settings.storage_classes
            if classes is None:
                yield "pod with PVC is protected against eviction"
            else:
                yield from self._claims(resident, classes)
        if self._resource_claims and traits.resource_claims:
            yield (
                "pod has ResourceClaims and descheduler is configured to protect ResourceClaims"
                " pods"
            )
        if self._without_budget and not any(
            budget.means(pod.pod_class) for budget in self._state.budgets
        ):
            yield "pod does not have a PodDisruptionBudget and is protected against eviction"

    def _claims(self, resident: Resident, protected: frozenset[str]) -> Iterator[str]:
        """A claim whose class nobody knows might be of a protected one."""
        for claim in resident.traits.claims:
            key = f"{resident.pod.namespace}/{claim}"
            storage_class = self._state.claim_classes.get(key)
            if storage_class is None:
                yield f"failed to get persistent volume claim {key!r}"
            elif not storage_class:
                yield f"failed to resolve storage class of claim {key!r}"
            elif storage_class in protected:
                yield f'pod using protected storage class "{storage_class}"'

    def _selected(self, resident: Resident) -> Iterator[str]:
        pods, pod_class = self.settings.pods, resident.pod.pod_class
        if not pods.namespaces.admits(pod_class.namespace):
            yield "pod namespace is not among those of the policy parameter"
        if not selection.PodSelection(selector=pods.selector).admits(pod_class):
            yield "pod labels do not match the labelSelector filter in the policy parameter"

    def _replicas(self, resident: Resident) -> Iterator[str]:
        least, references = self.settings.min_replicas, resident.pod.pod_class.references
        if least > 1 and len(references) == 1:
            count = self._state.owned(references[0].uid)
            if count < least:
                yield f"owner has {count} replicas which is less than minReplicas of {least}"

    def _age(self, resident: Resident) -> Iterator[str]:
        least, started = self.settings.min_age_seconds, resident.traits.started
        if least is not None and (not started or self._state.now.wall - started < least):
            yield f"pod age is not older than MinPodAge: {least:g} seconds"

    def _migration(self, resident: Resident) -> Iterator[str]:
        """What only Koordinator's evictor asks."""
        if not self.settings.migrates:
            return
        jobs, pod_class = self.settings.migration, resident.pod.pod_class
        if jobs.mode == RESERVATION_FIRST and pod_class.scheduler not in jobs.scheduler_names:
            yield (
                f"pod is of scheduler {pod_class.scheduler}, which makes no reservations:"
                " schedulerNames does not list it"
            )
        signature = self._state.workloads.signature(pod_class)
        if signature is None or not jobs.checks_replicas:
            return
        expected = self._state.workloads.expected(self._state.workloads.members(signature))
        for name, configured in (
            ("maxMigratingPerWorkload", jobs.max_per_workload),
            ("maxUnavailablePerWorkload", jobs.max_unavailable),
        ):
            most = workloads.of_replicas(configured, expected)
            if expected in {1, most}:
                yield f"{signature} expects {expected} replicas, and {name} is {most}"

    def admits_namespace(self, resident: Resident) -> bool:
        """Whether the labels of its namespace are those that are wanted."""
        wanted: selectors.Compiled | None = self.settings.namespace_selector
        if wanted is None:
            return True
        labels = self._state.columns.namespaces.get(resident.pod.namespace, {})
        return selection.matches(wanted, labels)
