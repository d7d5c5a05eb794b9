"""A long random walk of movers, kubelets and restarts: no window is ever exceeded, by anybody.

Covers: one namespace, two rates over each pod, movers in the foreground, in the background and in
shadow. Does not cover: plans (``tests.scheduler.rescheduling``), the server's own budgets.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from koordlet.scheduler.disruption import answers
from tests.kit.disruptions import ACTS, BACKGROUND, UNBOUNDED, WATCHES, Picture

#: Count and seconds, of a rate of application ``a`` and of that of each application.
WHOLE = ((3, 600.0), (8, 7200.0))
EACH = ((1, 300.0), (4, 7200.0))
APPS, REPLICAS, MIN_UP = ("a", "b", "c"), 6, 4
_REASON = "EvictionByEvictionAPI"


class Walk:
    """A cluster, a record of its own of what was accepted, and one step after the other."""

    def __init__(self, seed: int) -> None:
        self._random, self._next = random.Random(seed), 0
        self.cluster = Picture(UNBOUNDED)
        whole, each = (
            [{"count": count, "window": f"{int(window)}s"} for count, window in limits]
            for limits in (WHOLE, EACH)
        )
        for app in APPS:
            self.cluster.controller(app, REPLICAS)
            self.cluster.rate(app, selector=app, limits=each, minUp=MIN_UP)
            for _ in range(REPLICAS):
                self._create(app)
        self.cluster.rate("whole", selector="a", limits=whole)
        #: When pods were disrupted, and the UIDs: by application.
        self.disrupted: dict[str, list[float]] = {app: [] for app in APPS}
        self.uids: list[str] = []
        self.shadows = 0

    def _create(self, app: str, *, ready: bool = True) -> None:
        self._next += 1
        self.cluster.pod(f"{app}-{self._next}", of=app, ready=ready)

    @staticmethod
    def app(name: str) -> str:
        """Whose pod it is."""
        return name.partition("-")[0]

    def step(self) -> None:
        """Time passes; somebody asks, a pod is gone, or one becomes ready."""
        cluster, choose = self.cluster, self._random
        cluster.at += choose.choice((0.0, 1.0, 20.0, 150.0))
        if choose.random() < 0.1:
            cluster.limiter.settle(cluster.now())  # what limits nothing any more is forgotten
        pods = list(cluster.pods.values())
        pod = choose.choice(pods)
        if pod.terminating:
            cluster.gone(pod.name)
            self._create(self.app(pod.name), ready=choose.random() < 0.5)
        elif not pod.ready and choose.random() < 0.7:
            cluster.pod(pod.name, of=self.app(pod.name))
        else:
            self._ask(pod.name, choose.choice((ACTS, BACKGROUND, WATCHES)))

    def _ask(self, name: str, mover: answers.Mover) -> None:
        cluster, choose = self.cluster, self._random
        pod = cluster.pods[f"d/{name}"]
        if not mover.acts:
            before = cluster.ask(pod)
            shown = cluster.ask(pod, mover)
            assert isinstance(shown, answers.Deny)
            assert shown.reason == "Shadow"
            if isinstance(shown.would, answers.Allow):
                cluster.debit(pod, mover)
                self.shadows += 1
            assert cluster.ask(pod) == before, "what only watches leaves no trace for who acts"
            return
        if not isinstance(cluster.ask(pod, mover), answers.Allow):
            return
        cluster.limiter.begin(pod, "Eviction", mover, cluster.now())
        if choose.random() < 0.2:
            cluster.limiter.refused(pod)
            return
        cluster.limiter.accepted(pod, cluster.now())
        up = sum(p.up for p in cluster.pods.values() if self.app(p.name) == self.app(name))
        assert up - pod.up >= MIN_UP or not pod.up
        self.disrupted[self.app(name)].append(cluster.at)
        self.uids.append(pod.uid)
        # Its end is seen a moment later, with a cause that counts: it is debited already.
        cluster.pod(name, of=self.app(name), ready=pod.ready, ends=_REASON)

    def check(self) -> None:
        """No window, wherever it begins, has more than its count; nobody was disrupted twice."""
        assert len(set(self.uids)) == len(self.uids)
        for app, times in self.disrupted.items():
            for count, window in (*EACH, *(WHOLE if app == "a" else ())):
                # The count-th after each is at least a whole window later.
                pairs = zip(times, times[count:], strict=False)
                assert all(later - earlier >= window for earlier, later in pairs), app


def walked(seed: int, steps: int) -> Walk:
    """A walk of so many steps, whose record was checked."""
    walk = Walk(seed)
    for _ in range(steps):
        walk.step()
    walk.check()
    assert all(walk.disrupted.values())
    assert walk.shadows > 0
    return walk


@pytest.mark.parametrize("seed", [1, 2])
def test_no_window_is_exceeded_and_nobody_waits_for_ever(seed: int) -> None:
    """Once the longest window has passed and all are up, whoever asks is let go."""
    walk = walked(seed, 800)
    cluster = walk.cluster
    for pod in list(cluster.pods.values()):
        if pod.terminating:
            cluster.gone(pod.name)
            walk._create(walk.app(pod.name))
        elif not pod.ready:
            cluster.pod(pod.name, of=walk.app(pod.name))
    cluster.at += 7201.0
    for pod in cluster.pods.values():
        for mover in (ACTS, BACKGROUND):
            assert cluster.ask(pod, mover) == answers.Allow(), pod.name


@pytest.mark.parametrize("seed", [1, 2])
def test_each_of_several_movers_is_served_in_bounded_time(seed: int) -> None:
    """They poll in any order, and want the same pods; the default bounds of the cluster hold, too.

    The slowest window lets four go in two hours, two of them for a background mover: nobody waits
    for longer than all before him need, and he himself.
    """
    choose, cluster, wants = random.Random(seed), Picture(), 4
    movers = (ACTS, BACKGROUND, answers.Mover(name="drain/n1", acts=True))
    for app in APPS:
        cluster.controller(app, REPLICAS)
        limits = [{"count": count, "window": f"{int(window)}s"} for count, window in EACH]
        cluster.rate(app, selector=app, limits=limits, minUp=MIN_UP)
        for place in range(REPLICAS):
            cluster.pod(f"{app}-{place}", of=app)
    left = Counter({(mover.name, app): wants for mover in movers for app in APPS})
    moved, longest = 0, EACH[1][1]
    bound = (len(movers) * wants / 4 + wants / 2) * longest
    while left.total():
        assert cluster.at <= bound, dict(+left)
        cluster.at += 15.0
        waiting = [mover for mover in movers for app in APPS if left[mover.name, app]]
        for mover in choose.sample(waiting, len(waiting)):
            pod = choose.choice(list(cluster.pods.values()))
            app = Walk.app(pod.name)
            if left[mover.name, app] and not cluster.evict(pod, mover):
                left[mover.name, app] -= 1
                moved += 1
                cluster.pod(pod.name, of=app, ends=_REASON)
                cluster.gone(pod.name)
                cluster.pod(f"{app}-new-{moved}", of=app)
    assert moved == len(movers) * len(APPS) * wants


@pytest.mark.soak
def test_no_window_is_exceeded_in_a_hundred_thousand_steps() -> None:
    """As above."""
    walked(0, 100_000)
