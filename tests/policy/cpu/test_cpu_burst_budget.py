"""Tokens of a container that goes beyond its limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from koordlet.policy.cpu import cpu_burst as budgets
from koordlet.policy.cpu.cpu_burst import Budget, Rule

RULE = Rule(period=10, percent=300)


def test_the_start() -> None:
    """Between nothing and half of a period's worth, the same for the same name."""
    starts = {budgets.spend(RULE, None, f"c{n}", 0.0, 0.0).tokens for n in range(50)}

    assert len(starts) > 40
    assert all(0 <= start < 1000 for start in starts)
    assert budgets.spend(RULE, None, "c1", 0.0, 9.0) == budgets.spend(RULE, None, "c1", 0.0, 0.0)


def test_spending_and_saving() -> None:
    """Above the limit what is above it, below 60 % what is left of it, in between nothing."""
    kept = Budget(tokens=500.0, at=0.0, capacity=2000.0)

    assert budgets.spend(RULE, kept, "c", 2.0, 250.0).tokens == 200.0
    assert budgets.spend(RULE, kept, "c", 2.0, 40.0).tokens == 620.0
    assert budgets.spend(RULE, kept, "c", 2.0, 60.0).tokens == 500.0
    assert budgets.spend(RULE, kept, "c", 2.0, 100.0).tokens == 500.0


def test_no_burst_at_all() -> None:
    """A period of zero, or less than the limit, leaves no token: what must be is refused."""
    for rule in (Rule(period=0, percent=300), Rule(period=10, percent=90)):
        first = budgets.spend(rule, None, "c", 0.0, 0.0)
        assert budgets.spend(rule, first, "c", 1.0, 0.0).tokens <= 0


def test_another_rule_or_a_long_pause() -> None:
    """It starts anew."""
    kept = Budget(tokens=-2000.0, at=0.0, capacity=2000.0)

    assert budgets.spend(RULE, kept, "c", 21.0, 500.0).tokens >= 0
    assert budgets.spend(Rule(period=20, percent=300), kept, "c", 1.0, 500.0).tokens >= 0


@given(st.lists(st.tuples(st.floats(-5, 30), st.floats(0, 10_000)), max_size=30))
def test_tokens_are_bounded(steps: list[tuple[float, float]]) -> None:
    """Whatever is used and whatever the clock does, a period's worth in either direction."""
    kept, at = None, 0.0
    for gap, percent in steps:
        at += gap
        kept = budgets.spend(RULE, kept, "c", at, percent)
        assert -2000 <= kept.tokens <= 2000
