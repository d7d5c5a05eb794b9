"""Who is disturbed for long, and which neighbour's use goes with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from koordlet.history import series
from koordlet.model import decision, meter
from koordlet.policy.best_effort import adaptive, interference
from koordlet.policy.best_effort.interference import Sample, Samples
from tests.kit import counting
from tests.policy.best_effort import test_adaptive
from tests.policy.best_effort.test_adaptive_cycles import BEGIN, MINUTE, moment

#: Slowdown while it is slowed, and while it is not.
SLOW, CALM = 0.6, -0.2


def samples(slowdown: Sequence[float], **used: Sequence[float]) -> Samples:
    """Minutes of the pod ``web`` and of its neighbours."""
    return tuple(
        Sample(MINUTE * place, {"web": each}, {pod: cpus[place] for pod, cpus in used.items()})
        for place, each in enumerate(slowdown)
    )


def named(several: Samples) -> list[tuple[str, str]]:
    """Type and pod of each condition."""
    return [(each.type, each.subject) for each in interference.conditions(several)]


@pytest.mark.parametrize(
    ("slowdown", "expected"),
    [
        ([SLOW, CALM, SLOW, CALM, SLOW], ["web"]),
        ([SLOW] * 5 + [CALM, CALM, CALM, SLOW, SLOW], []),
        ([SLOW] * 4 + [CALM], []),
        ([SLOW, SLOW], []),
        ([], []),
    ],
)
def test_three_of_the_last_five_minutes_disturb_and_the_newest(
    slowdown: list[float], expected: list[str]
) -> None:
    """What lies further back counts no more."""
    assert interference.disturbed(samples(slowdown)) == expected


def test_the_worst_three_are_looked_at() -> None:
    """By their slowdown of the newest minute."""
    slowdown = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.2, "e": -0.1}
    assert interference.disturbed((Sample(0.0, slowdown, {}),) * 3) == ["b", "c", "d"]


def test_whose_use_goes_with_the_slowdown_is_suspected() -> None:
    """Not who uses as much in calm minutes, nor who hardly uses anything."""
    slowdown = [CALM, CALM, SLOW, CALM, SLOW, CALM, SLOW, CALM, SLOW, SLOW]
    hog = [3.0 if each > 0 else 0.0 for each in slowdown]
    several = samples(slowdown, web=[1.0] * 10, steady=[4.0] * 10, hog=hog)
    assert interference.suspect(several, "web") == "hog"
    assert named(several) == [("LatencySensitiveSlowed", "web"), ("DisturbsNeighbours", "hog")]
    small = samples(slowdown, web=[1.0] * 10, steady=[4.0] * 10, hog=[cpus / 10 for cpus in hog])
    assert named(small) == [("LatencySensitiveSlowed", "web")]
    against = [4.0 if each < 0 else 0.0 for each in slowdown]
    assert interference.suspect(samples(slowdown, hog=against), "web") == ""


def test_one_minute_that_is_far_off_suspects_nobody() -> None:
    """It counts as twice the tolerance: a neighbour of steady use is not blamed for it."""
    slowdown = [CALM] * 7 + [0.05, 0.05, 5.0]
    several = samples(slowdown, web=[1.0] * 10, steady=[4.0] * 10)
    assert named(several) == [("LatencySensitiveSlowed", "web")]


def test_a_weak_correlation_suspects_nobody() -> None:
    """At least 0.35 of the tolerance in the minutes in which it uses CPU."""
    hog = [0.0, 0.0, 2.0, 2.0, 2.0]
    for slowdown, expected in ((0.36, "hog"), (0.34, "")):
        several = samples([CALM, CALM, slowdown, slowdown, slowdown], hog=hog)
        assert interference.suspect(several, "web") == expected


def test_ten_minutes_are_remembered() -> None:
    """By number and by age; so long after a gap nothing of before counts."""
    several: Samples = ()
    for place in range(15):
        several = interference.taken(several, Sample(MINUTE * place, {}, {}))
    assert [each.at / MINUTE for each in several] == list(range(5, 15))
    late = interference.taken(several, Sample(MINUTE * 23, {}, {}))
    assert [each.at / MINUTE for each in late] == [14, 23]


def test_the_policy_blames_by_what_the_machine_counts() -> None:
    """Second by second: half an hour alone, then a job that takes the cache in some minutes."""
    busy = [False] * 20 + [False, True, False, True, False, True, True]
    history, state = series.History(), adaptive.State()
    totals = {"web": 0.0, "job": 0.0}
    made: decision.Decision[adaptive.State] | None = None
    for number, takes in enumerate(busy):
        for second in range(60):
            totals = {"web": totals["web"] + 1.0, "job": totals["job"] + (3.0 if takes else 0.1)}
            at = BEGIN + MINUTE * (number - 1) + second + 1
            columns = {meter.CPU: totals.values()}
            history.take({"groups": counting.reading(at, columns, names=("web", "job"))})
        ratio = 2.0 if takes else 1.0
        work = {meter.CYCLES: [1e9], meter.INSTRUCTIONS: [1e9 / ratio], meter.CPI: [ratio]}
        history.take({"work": counting.reading(BEGIN + MINUTE * number, work, names=("web",))})
        now = moment(number + 1)
        made = adaptive.decide(now, history, adaptive.Settings(), state)
        state = made.next_state
        again = adaptive.decide(now, history, adaptive.Settings(), state)
        assert again.next_state.samples == state.samples, "a window is one sample"
    assert made is not None
    about_pods = [(each.type, each.subject) for each in made.conditions if each.subject != "node"]
    assert about_pods == [
        ("LatencySensitiveSlowed", test_adaptive.WEB.key),
        ("DisturbsNeighbours", test_adaptive.JOB.key),
    ]
    off = adaptive.decide(moment(len(busy)), history, adaptive.Settings(work_tolerance=0.0), state)
    assert [each for each in off.conditions if each.subject != "node"] == []
