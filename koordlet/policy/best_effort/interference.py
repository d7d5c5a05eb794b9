"""Who disturbs whom: latency-sensitive pods that run slower while a neighbour uses more CPU. Pure.

Covers: who is disturbed for long, whose use goes with it. Does not cover: counting cycles
(``host.counters.performance``), what is usual (``adaptive``), moving anybody (a descheduler).

Rules:
1. Disturbed is a pod whose cycles per instruction were beyond the tolerance in ``_SLOW`` of the
   last ``_LATELY`` minutes, the newest among them; the worst ``MOST`` are looked at.
2. The correlation of a neighbour, over ten minutes: the slowdown of each minute, weighted by the
   part of the neighbour's CPU use that fell into it. Slowdown is how far the cycles are beyond the
   tolerance, as a fraction of it; in a minute without, it is negative, and weighs alike. No minute
   counts more than ``_BOUND``: one that is far off blames nobody.
3. Suspected is the neighbour of the largest correlation, at least ``_LEAST``. One that has used
   less than a tenth of what all pods used takes nothing worth a word.
4. It tells, and changes nothing: best-effort work yields already (``adaptive``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping

from koordlet.model import decision
from koordlet.model.record import dataclass

MOST = 3
_SLOW, _LATELY, _SAMPLES = 3, 5, 10
_LEAST, _USES, _BOUND = 0.35, 0.1, 1.0
#: Windows come once a minute; what is older than ten of them is no sample any more.
_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One minute, by key of the pod."""

    at: float
    #: Of those of whom the usual is known.
    slowdown: Mapping[str, float]
    #: CPUs.
    used: Mapping[str, float]


Samples = tuple[Sample, ...]


def taken(samples: Samples, fresh: Sample) -> Samples:
    """The samples with a new one, and without those that are too old."""
    kept = [each for each in samples if fresh.at - each.at < _SECONDS]
    return (*kept[1 - _SAMPLES :], fresh)


def disturbed(samples: Samples) -> list[str]:
    """Rule 1, the worst first."""
    lately = samples[-_LATELY:]
    if not lately:
        return []
    slow = [
        (-slowdown, pod)
        for pod, slowdown in lately[-1].slowdown.items()
        if slowdown > 0 and sum(each.slowdown.get(pod, 0.0) > 0 for each in lately) >= _SLOW
    ]
    return [pod for _, pod in sorted(slow)[:MOST]]


def suspect(samples: Samples, victim: str) -> str:
    """The neighbour that disturbs a pod (rules 2 and 3); empty: nobody knows."""
    several = [each for each in samples if victim in each.slowdown]
    whole = math.fsum(used for each in several for used in each.used.values())
    best = 0.0, 0.0, ""
    for pod in several[-1].used if several else ():
        used = [each.used.get(pod, 0.0) for each in several]
        own = math.fsum(used)
        if pod == victim or own <= 0 or own < _USES * whole:
            continue
        slowdowns = (min(_BOUND, each.slowdown[victim]) for each in several)
        correlation = math.fsum(map(operator.mul, slowdowns, used)) / own
        if correlation >= _LEAST:
            best = max(best, (correlation, own, pod))
    return best[2]


def conditions(samples: Samples) -> Iterator[decision.Condition]:
    """Who is disturbed, and who is suspected; amounts are left out: words that move are writes."""
    victims = disturbed(samples)
    for pod in victims:
        text = "it has needed far more cycles per instruction than usual for minutes"
        yield _condition("LatencySensitiveSlowed", pod, text)
    for pod in sorted({suspect(samples, victim) for victim in victims} - {""}):
        text = (
            "it uses CPU in the minutes in which latency-sensitive neighbours are slowed: it may"
            " take cache or memory bandwidth from them"
        )
        yield _condition("DisturbsNeighbours", pod, text)


def _condition(name: str, pod: str, text: str) -> decision.Condition:
    return decision.Condition(type=name, reason="CyclesPerInstruction", subject=pod, message=text)
