"""Evictions are carried out beside the loop: in number, never twice, with patience."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from koordlet.apply import evictor
from koordlet.apply.evictor import Outcome
from koordlet.model import action, eviction, plan, result, snapshot
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos

SHAPE = moments.machine(1, 2)


class Backend:
    """Answers as it is told, and counts who was asked for."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, victim: eviction.Eviction) -> Outcome:
        """The next answer; done, where there is none left."""
        self.asked.append(victim.uid)
        answer = self.answers.pop(0) if self.answers else Outcome(done=True, detail="ended")
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bench:
    """An evictor whose tasks run when they are told to."""

    def __init__(self, backend: evictor.Way | str, **limits: int) -> None:
        self.works: list[Coroutine[Any, Any, None]] = []
        self.reported: list[result.Result] = []
        self.evictor = evictor.Evictor(
            lambda: backend,
            report=self.reported.append,
            limits=lambda: evictor.Limits(**limits),
            spawn=self.works.append,
        )
        self.pods = {name: colocation.kube(name, KubeQos.BURSTABLE) for name in "abcdefgh"}

    def moment(self, at: float) -> snapshot.Snapshot:
        """Everybody who is still here."""
        return colocation.moment(SHAPE, list(self.pods.values()), at=at)

    def take(
        self, name: str, at: float, *, signal: str = "memory.available", run: bool = True
    ) -> result.Result:
        """Ask for one, and let what was begun run to its end."""
        victim = eviction.Eviction(
            pod=f"t/{name}",
            uid=name,
            policy="node_pressure",
            signal=signal,
            reason="Evicted",
            message="m",
            grace_seconds=1,
        )
        wanted = action.Evict(
            target=f"pod/t/{name}", victim=victim, policy="node_pressure", reason="r"
        )
        answer = self.evictor.take(plan.Step(order=0, action=wanted, was=None), self.moment(at))
        if run:
            self.run()
        return answer

    def run(self) -> None:
        """Let what was begun run to its end."""
        while self.works:
            asyncio.run(self.works.pop())


def test_one_after_the_other_for_a_signal() -> None:
    """Another one for the same signal waits until the first is gone; another signal does not."""
    backend = Backend()
    bench = Bench(backend)
    bench.take("a", 0.0)
    waits = bench.take("b", 1.0)
    bench.take("c", 1.0, signal="pid.available")
    del bench.pods["a"]
    bench.take("b", 2.0)

    assert "another eviction for" in waits.detail
    assert backend.asked == ["a", "c", "b"]
    assert [report.verdict for report in bench.reported] == [result.Verdict.DONE] * 3


def test_what_has_ended_keeps_nobody_waiting() -> None:
    """Where nothing of a pod runs any more its relief is there, whoever still lists it."""
    bench = Bench(Backend(Outcome(done=True, detail="ended", gone=True)))
    bench.take("a", 0.0)

    assert bench.take("b", 1.0).detail == "begun"
    assert "still exists" in bench.take("a", 2.0).detail


def test_nobody_twice() -> None:
    """Who was evicted and is still there is not evicted again, until it had five minutes."""
    backend = Backend()
    bench = Bench(backend)
    bench.take("a", 0.0)
    again = bench.take("a", 100.0)
    bench.take("a", 301.0)

    assert "still exists" in again.detail
    assert backend.asked == ["a", "a"]


def test_while_it_is_under_way() -> None:
    """What has begun is not begun again."""
    bench = Bench(Backend())
    bench.take("a", 0.0, run=False)
    again = bench.take("a", 3.0, run=False)

    assert "in flight for 3 s" in again.detail
    assert len(bench.works) == 1
    bench.run()


@pytest.mark.parametrize(("asked", "pause"), [(None, 5.0), (30.0, 30.0), (0.0, 5.0)])
def test_a_refusal_waits(asked: float | None, pause: float) -> None:
    """As long as the server says, and at least a moment; then it is tried again."""
    backend = Backend(Outcome(done=False, detail="its budget", retry_after=asked))
    bench = Bench(backend)
    bench.take("a", 0.0)
    waits = bench.take("a", pause - 0.1)
    bench.take("a", pause)

    assert "its budget" in waits.detail
    assert backend.asked == ["a", "a"]
    assert [report.verdict for report in bench.reported] == [
        result.Verdict.REFUSED,
        result.Verdict.DONE,
    ]


def test_pauses_grow() -> None:
    """A server that never answers is asked less and less often."""
    bench = Bench(Backend(*(TimeoutError() for _ in range(50))))
    asked = [at for at in range(2000) if bench.take("a", float(at)).detail == "begun"]

    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert gaps[:4] == [5, 10, 20, 40]
    assert max(gaps) == 300


def test_never_critical_static_or_stale() -> None:
    """Whatever a policy says."""
    bench = Bench(backend := Backend())
    bench.pods["a"] = replace(bench.pods["a"], static=True)
    bench.pods["b"] = replace(bench.pods["b"], priority=2_000_000_000)
    bench.pods["c"] = replace(bench.pods["c"], stale=True)
    del bench.pods["d"]
    verdicts = [bench.take(name, 0.0).verdict for name in "abcd"]

    assert verdicts == [
        result.Verdict.REFUSED,
        result.Verdict.REFUSED,
        result.Verdict.WAITING,
        result.Verdict.VANISHED,
    ]
    assert not backend.asked


def test_without_a_backend_the_reason_is_the_answer() -> None:
    """Without a store in a cluster, the reason is the answer."""
    assert Bench("no API server").take("a", 0.0).detail == "no API server"


def test_rate() -> None:
    """So many are begun in any minute, of all signals together."""
    bench = Bench(backend := Backend(), per_minute=2, in_flight=100)
    waits = [bench.take(name, 1.0, signal=name).detail for name in "abc"]
    bench.take("c", 61.0, signal="c")

    assert waits[:2] == ["begun", "begun"]
    assert "limit of 2 evictions per minute" in waits[2]
    assert backend.asked == ["a", "b", "c"]


def test_a_storm() -> None:
    """All signals at once, 500 pods, answers at random: in number, and nobody twice."""
    chance = random.Random(7)
    kinds: list[Outcome | Exception] = [
        Outcome(done=True, detail="gone"),
        Outcome(done=False, detail="429", retry_after=10.0),
        Outcome(done=False, detail="500"),
        TimeoutError("late"),
    ]
    answers = [chance.choice(kinds) for _ in range(10_000)]
    bench = Bench(backend := Backend(*answers), per_minute=10)
    bench.pods = {f"p{n}": colocation.kube(f"p{n}", KubeQos.BURSTABLE) for n in range(500)}
    signals = ("memory.available", "nodefs.available", "pid.available")
    begun: list[int] = []
    evicted: list[str] = []
    for at in range(300):
        names = list(bench.pods)
        for number, signal in enumerate(signals):
            if bench.take(names[number], float(at), signal=signal).detail == "begun":
                begun.append(at)
        done = [report for report in bench.reported if report.verdict is result.Verdict.DONE]
        for report in done[len(evicted) :]:
            evicted.append(report.target)
            bench.pods.pop(report.target.rpartition("/")[2], None)
    most = max(sum(start <= at < start + 60 for at in begun) for start in range(300))

    assert evicted
    assert len(evicted) == len(set(evicted))
    assert most <= 10
    assert len(begun) == len(backend.asked)
