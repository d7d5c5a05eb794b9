"""Pods, controllers and rates for the limiter, without a store: a picture and a clock by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import disruption_rates
from koordlet.model import moment
from koordlet.scheduler.disruption import answers, limiter, settings
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.objects import decoder, owners
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters

#: 2026-01-01T00:00:00Z
START = 1767225600.0
NAMESPACE = "d"


class Picture:
    """A cluster of pods in one namespace, and the limiter over it."""

    def __init__(self, configured: Mapping[str, Any] | None = None) -> None:
        body = {"apiVersion": settings.API_VERSION, **(configured or {})}
        self.at = 0.0
        self.health = limiter.ClusterHealth(nodes=10, pods=100)
        self.budgets = DisruptionBudgets()
        self.pods: dict[str, Pod] = {}
        self._decoder = decoder.Decoder({})
        self.disruptions = Disruptions(
            settings.read(body, "test"),
            self.pods.values,
            self.budgets,
            lambda: self.health,
            self.now,
        )
        self.limiter, self.tracker = self.disruptions.limiter, self.disruptions.tracker

    def now(self) -> answers.Clock:
        """This moment; monotonic time began a thousand seconds ago."""
        return answers.Clock(wall=START + self.at, steady=1000.0 + self.at)

    def controller(self, name: str, replicas: int, *, above: str = "") -> None:
        """A ReplicaSet, of a Deployment where one is named."""
        references = [{"kind": "Deployment", "name": above, "controller": True}] if above else []
        meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": references}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
        body = {"kind": "ReplicaSet", "metadata": meta, "spec": spec}
        self.disruptions.owner(None, owners.decode(body))

    def pod(
        self,
        name: str,
        *,
        of: str = "",
        kind: str = "ReplicaSet",
        app: str = "",
        on: str = "n1",
        ready: bool = True,
        annotations: Mapping[str, str] | None = None,
        ends: str | None = None,
        **more: Any,
    ) -> Pod:
        """A pod as the store shows it now; ``ends``: the reason of its DisruptionTarget.

        ``began``: when its end began, which never changes; now, unless somebody says.
        """
        meta: dict[str, Any] = {
            "uid": f"uid-{name}",
            "creationTimestamp": moment.spell(START + more.pop("created", self.at)),
            "annotations": dict(annotations or {}),
        }
        if of:
            meta["ownerReferences"] = [{"kind": kind, "name": of, "controller": True}]
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        began = more.pop("began", self.at)
        if ends is not None:
            meta["deletionTimestamp"] = moment.spell(START + began + 30)
            meta["deletionGracePeriodSeconds"] = 30
            if ends:
                conditions.append({"type": "DisruptionTarget", "status": "True", "reason": ends})
        body = clusters.pod(
            name,
            on=on,
            labels={"app": app or of or "web"},
            meta=meta,
            status={"phase": "Running", "conditions": conditions},
            **more,
        )
        pod = self._decoder.decode(body, 0)
        old = self.pods.get(pod.key)
        self.pods[pod.key] = pod
        self.disruptions.pod(old, pod)
        return pod

    def gone(self, name: str) -> None:
        """A pod is gone."""
        old = self.pods.pop(f"{NAMESPACE}/{name}")
        self.disruptions.pod(old, None)

    def rate(
        self, name: str = "web", *, status: Mapping[str, Any] | None = None, **spec: Any
    ) -> disruption_rates.DisruptionRate:
        """A DisruptionRate; without a selector one for each controller."""
        if "selector" in spec:
            spec["selector"] = {"matchLabels": {"app": spec["selector"]}}
        else:
            spec["byController"] = True
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "generation": 1},
            "spec": spec,
            "status": status or {},
        }
        rate = disruption_rates.disruption_rate(body)
        self.disruptions.rate(None, rate)
        return rate

    def ask(
        self, pod: Pod, mover: answers.Mover | None = None, cause: str = "Eviction"
    ) -> answers.Answer:
        """Whether it may be evicted."""
        return self.limiter.may_evict(pod, cause, mover or ACTS, self.now())

    def evict(self, pod: Pod, mover: answers.Mover | None = None, cause: str = "Eviction") -> str:
        """Ask, and be accepted at once: the reason of a refusal, empty where there is none."""
        answer = self.ask(pod, mover, cause)
        if isinstance(answer, answers.Allow):
            self.limiter.begin(pod, cause, mover or ACTS, self.now())
            self.limiter.accepted(pod, self.now())
        return reason(answer)

    def debit(self, pod: Pod, mover: answers.Mover | None = None) -> None:
        """An eviction that was accepted, whatever the limiter would have said."""
        self.limiter.begin(pod, "Eviction", mover or ACTS, self.now())
        self.limiter.accepted(pod, self.now())


#: A mover that acts, in the foreground; the same in the background; one that only watches.
ACTS = answers.Mover(name="migrate", acts=True)
BACKGROUND = answers.Mover(name="descheduler/low-node-load", acts=True)
WATCHES = answers.Mover(name="migrate")
#: Without other bounds than the rates.
UNBOUNDED = {
    "limiter": {
        "perMinute": 10**6,
        "inFlight": 10**6,
        "perNodeInFlight": 10**6,
        "perNodeFiveMinutes": 10**6,
        "perControllerInFlight": "100%",
        "perControllerUnavailable": "100%",
        "coolDown": "0s",
    }
}


def reason(answer: answers.Answer) -> str:
    """The reason of a refusal; empty: it is allowed."""
    return "" if isinstance(answer, answers.Allow) else answer.reason
