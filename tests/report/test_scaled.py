"""CPU limits and bursts in force, from what was carried out."""

from __future__ import annotations

import pytest

from koordlet.model import action, knob, plan, result
from koordlet.report import scaled

DONE = result.Verdict.DONE


def step(
    group: str,
    value: str,
    row: knob.Knob = knob.CPU_CFS_QUOTA,
    *,
    policy: str = "cpu_burst",
    verdict: result.Verdict = DONE,
    undo: bool = False,
    interim: bool = False,
) -> result.Result:
    """One file written for a policy."""
    target = f"/sys/fs/cgroup/{group}/{row.name}"
    did = action.WriteFile(
        target=target, value=value, policy=policy, reason="r", knob=row.name, group=group
    )
    done = plan.Step(order=0, action=did, was=None, undo=undo, interim=interim)
    return result.Result(target=target, verdict=verdict, step=done)


def test_what_was_written_last_counts() -> None:
    """Limit and burst of both cgroup versions; unlimited is no limit."""
    book = scaled.Scaled()
    book.passed([step("a", "200000"), step("a", "50000", knob.CPU_CFS_BURST)], {"a", "b"})
    limits = book.passed(
        [
            step("a", "240000"),
            step("b", "150000 100000", knob.CPU_MAX),
            step("b", "9000", knob.CPU_BURST),
        ],
        {"a", "b"},
    )

    quotas = {("quota", "a"): 240_000, ("quota", "b"): 150_000}
    assert {**quotas, ("burst", "a"): 50_000, ("burst", "b"): 9_000} == limits
    unlimited = [step("b", "max 100000", knob.CPU_MAX), step("a", "-1")]
    assert set(book.passed(unlimited, {"a", "b"})) == {("burst", "a"), ("burst", "b")}


@pytest.mark.parametrize(
    "unrelated",
    [
        step("a", "1", policy="bound_quota"),
        step("a", "1", verdict=result.Verdict.REFUSED),
        step("a", "1", interim=True),
        step("a", "1", knob.CPU_SHARES),
    ],
)
def test_what_says_nothing(unrelated: result.Result) -> None:
    """Other policies, refusals, values on the way, other files."""
    book = scaled.Scaled()

    assert book.passed([step("a", "5000"), unrelated], {"a"}) == {("quota", "a"): 5000}


def test_what_is_put_back_or_gone_is_forgotten() -> None:
    """And while nothing changes the same value is given."""
    book = scaled.Scaled()
    before = book.passed([step("a", "5000"), step("b", "6000")], {"a", "b"})
    assert before is book.passed([], {"a", "b"})

    assert book.passed([step("a", "1000", undo=True)], {"a", "b"}) == {("quota", "b"): 6000}
    assert book.passed([step("c", "1", policy="bound_quota")], {"c"}) == {}
