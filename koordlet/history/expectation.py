"""Prediction of use: peaks of workloads, and reclaimable prod resources.

Covers: one pair of histograms for each workload and each class, the prediction from them, what of
it is saved. Does not cover: files (``state.checkpoint``), who uses the result. Pure.

As the peer does it, with its numbers: the peak of CPU is the 95th percentile, of memory the 98th,
and a tenth more for safety. Two estimates are made. By workload: what it asked for beyond its own
peak, nothing while it is younger than a day. By class: what all prod workloads asked for beyond the
peak of system and prod together. The smaller reclaimable and the larger peak are taken, and what is
reclaimable never exceeds what the node has beyond the peak.

A workload's sample is the average of a minute; workloads take turns, so each tick trains a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.history import histogram
from koordlet.model import pod as pods
from koordlet.model import prediction, qos, resources
from koordlet.model.record import dataclass

#: Resource, its buckets, the percentile that is its peak.
_RESOURCES = (("cpu", histogram.CPU, 0.95), ("memory", histogram.MEMORY, 0.98))
MARGIN = 1.1
COLD_SECONDS = 24 * 3600.0
#: A model of somebody who was not seen for so long is forgotten.
EXPIRY_SECONDS = 1800.0
#: What was saved longer ago is not taken back: memory has halved ten times, CPU twenty times.
_OLDEST = 10 * 24 * 3600.0
#: Subjects that are no workloads.
PROD, SYSTEM = "class/prod", "class/system"
#: Version of what is saved.
SCHEMA = 1
#: Parts in which models are saved, so that no tick writes them all.
PARTS = 16


@dataclass(slots=True)
class _Model:
    """Histograms of one subject."""

    by_resource: tuple[histogram.Histogram, ...]
    #: When its first and its last sample came.
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the models, as plain data."""

    wall: float
    models: Mapping[str, object]


class Expectation:
    """All models of one node. Times count suspend, and only move forward."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}

    def __len__(self) -> int:
        return len(self._models)

    def train(self, who: str, cpu: float, memory: float, now: float) -> None:
        """One sample of one subject."""
        model = self._models.get(who)
        if model is None:
            made = tuple(histogram.Histogram(shape, now) for _, shape, _ in _RESOURCES)
            model = self._models[who] = _Model(made, now, now)
        for learned, value in zip(model.by_resource, (cpu, memory), strict=True):
            learned.add(value, now)
        model.last = now

    def wake(self, now: float) -> None:
        """Restart the expiry of all models."""
        for model in self._models.values():
            model.last = now

    def forget(self, now: float) -> None:
        """Drop models of subjects not seen for a while."""
        gone = [who for who, model in self._models.items() if now - model.last > EXPIRY_SECONDS]
        for who in gone:
            del self._models[who]

    def predict(
        self, pods: Iterable[pods.Pod], capacity: Mapping[str, float], now: float
    ) -> prediction.Prediction:
        """Predict prod use; empty while the classes have not been sampled."""
        prod = [pod for pod in pods if is_prod(pod) and pod.active and pod.deleting is None]
        reclaimable: dict[str, float] = {}
        peak: dict[str, float] = {}
        for index, (name, _, part) in enumerate(_RESOURCES):
            classes = [self._peak(who, index, part) for who in (PROD, SYSTEM)]
            if None in classes or name not in capacity:
                continue
            asked = [_asked(pod, name) for pod in prod]
            together = sum(peak or 0.0 for peak in classes) * MARGIN
            by_workload, peaks = 0.0, 0.0
            for pod, request in zip(prod, asked, strict=True):
                own = self._warm_peak(pod.uid, index, part, now)
                by_workload += 0.0 if own is None else max(request - own, 0.0)
                peaks += request if own is None else own
            estimates = (
                min(by_workload, max(capacity[name] - peaks, 0.0)),
                min(max(sum(asked) - together, 0.0), max(capacity[name] - together, 0.0)),
            )
            reclaimable[name], peak[name] = min(estimates), max(peaks, together)
        return prediction.Prediction(reclaimable=reclaimable, peak=peak)

    def _peak(self, who: str, index: int, part: float) -> float | None:
        model = self._models.get(who)
        return None if model is None else model.by_resource[index].percentile(part)

    def _warm_peak(self, who: str, index: int, part: float, now: float) -> float | None:
        """With the margin; ``None`` for who is too young to be judged."""
        model = self._models.get(who)
        if model is None or now - model.first < COLD_SECONDS:
            return None
        percentile = model.by_resource[index].percentile(part)
        return None if percentile is None else percentile * MARGIN

    def part(self, number: int, now: float, wall: float) -> Part:
        """One of the parts to be saved. A subject is always in the same one."""
        chosen = {
            who: {
                "first": now - model.first,
                "last": now - model.last,
                **{
                    name: histogram.save(now)
                    for (name, _, _), histogram in zip(_RESOURCES, model.by_resource, strict=True)
                },
            }
            for who, model in self._models.items()
            if part_of(who) == number
        }
        return Part(wall, chosen)

    def revive(self, body: Mapping[str, object], now: float, wall: float) -> None:
        """Take a part back. ``ValueError`` for damage; then nothing of it is taken.

        Nor is one so old that nothing is left of its weights: or the clock was set, and a model
        of one new sample would count as that of a workload which has been watched for years.
        """
        models = body.get("models")
        if not isinstance(models, Mapping):
            raise ValueError("not a part of the models")
        elapsed = max(0.0, wall - histogram.number(body.get("wall")))
        if elapsed > _OLDEST:
            return
        revived: dict[str, _Model] = {}
        for who, saved in models.items():
            if not isinstance(saved, Mapping):
                raise ValueError(f"{who}: not a model")
            first = histogram.number(saved.get("first"))
            made = tuple(
                histogram.Histogram.revive(shape, saved.get(name), now, elapsed)
                for name, shape, _ in _RESOURCES
            )
            # Who is still there has half an hour to be seen again.
            revived[str(who)] = _Model(made, now - elapsed - first, now)
        self._models |= revived


def is_prod(pod: pods.Pod) -> bool:
    """Whether a pod is of the prod band or of no band: only these have reclaimable requests."""
    if pod.band is None:
        return pod.qos is not qos.Qos.BE
    return pod.band is qos.Band.PROD


def part_of(who: str) -> int:
    """The part that a subject is saved in, the same in every run."""
    return sum(who.encode()) % PARTS


def _asked(pod: pods.Pod, name: str) -> float:
    """Request of a pod, in cores or bytes."""
    amount = pod.requests.get(name, 0)
    return amount / 1000 if name == resources.CPU else float(amount)
