"""The driver of resource claims is made when it has something to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from koordlet.agent import claim_driver
from koordlet.model import decision


class Driver:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def start(self, run_pass: Callable[[], bool]) -> None:
        """Begin."""
        self.asked.append(f"start {run_pass()}")

    def on_pass(self) -> None:
        """A pass."""
        self.asked.append("pass")

    async def stop(self) -> None:
        """The end."""
        self.asked.append("stop")

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Always one."""
        return (decision.Condition(type="T", reason="R", message="m"),)

    def counted(self) -> Mapping[str, float]:
        """Always one."""
        return {"claims": 1}


def test_a_policy_that_is_off_has_no_driver_until_it_is_switched_on() -> None:
    """From then on the driver lives, whatever the policy says: claims may be held."""
    made, on = Driver(), [False]
    late = claim_driver.LateDriver(lambda: on[0], lambda: made, at_once=False)
    late.start(lambda: True)
    late.on_pass()
    asyncio.run(late.stop())
    assert (made.asked, late.conditions(), late.counted()) == ([], (), {})
    on[0] = True
    late.on_pass()
    on[0] = False
    late.on_pass()
    assert made.asked == ["start True", "pass", "pass"]
    assert late.counted() == {"claims": 1}
    assert [condition.type for condition in late.conditions()] == ["T"]


def test_claims_of_an_agent_before_are_held_before_the_first_pass() -> None:
    """A checkpoint is there: the driver is made at once, also where its policy is off now."""
    made = Driver()
    late = claim_driver.LateDriver(lambda: False, lambda: made, at_once=True)
    assert late.counted() == {"claims": 1}
    late.start(lambda: True)
    late.on_pass()
    asyncio.run(late.stop())
    assert made.asked == ["start True", "pass", "stop"]
