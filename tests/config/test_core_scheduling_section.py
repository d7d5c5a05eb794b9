"""The section ``policies.core_scheduling``."""

from __future__ import annotations

import pytest

from koordlet.agent import policy_settings
from koordlet.model import errors
from koordlet.policy.cpu import core_scheduling, cpu_qos
from tests.kit import agents


def settings(text: str) -> core_scheduling.Settings:
    """What the policy is told."""
    section = policy_settings.settings(agents.effective(text).config)[core_scheduling.STEM]
    assert isinstance(section, core_scheduling.Settings)
    return section


def test_who_takes_part() -> None:
    """All three unless the file says otherwise."""
    assert frozenset({"LSR", "LS", "BE"}) == settings("").classes
    text = "policies: {core_scheduling: {mode: enforce, classes: [BE]}}\n"
    assert frozenset({"BE"}) == settings(text).classes


def test_a_class_that_is_none() -> None:
    """It is refused with its place."""
    with pytest.raises(errors.ConfigError, match="classes"):
        agents.effective("policies: {core_scheduling: {classes: [SYSTEM]}}\n")


@pytest.mark.parametrize(("mode", "answers"), [("off", False), ("shadow", True), ("enforce", True)])
def test_who_answers_for_it(mode: str, *, answers: bool) -> None:
    """``cpu_qos`` says that it is off, only while it is."""
    config = agents.effective(f"policies: {{core_scheduling: {{mode: {mode}}}}}\n").config
    section = policy_settings.settings(config)[cpu_qos.STEM]
    assert isinstance(section, cpu_qos.Settings)
    assert answers == section.cores
