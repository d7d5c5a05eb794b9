"""The section ``policies.real_time`` and the wish of a workload."""

from __future__ import annotations

import pytest

from koordlet.agent import policy_settings
from koordlet.model import errors
from koordlet.policy.cpu import real_time
from koordlet.workloads.annotations import registry
from tests.kit import agents

WORKLOAD = "workloads: [{{name: w, qos: LS, match: {{cgroup: w}}{}}}]\n"


def test_the_limit_is_the_policys() -> None:
    """80 % unless the file says otherwise."""
    for text, most in (("", 80), ("policies: {real_time: {limits: {maxPercent: 50}}}\n", 50)):
        section = policy_settings.settings(agents.effective(text).config)[real_time.STEM]
        assert section == real_time.Settings(max_percent=most)


def test_namespaces_that_may_ask() -> None:
    """All of them where none is named; an empty list is nobody."""
    for listed, names in (("null", None), ("[]", frozenset()), ("[shop]", frozenset({"shop"}))):
        text = f"policies: {{real_time: {{limits: {{namespaces: {listed}}}}}}}\n"
        section = policy_settings.settings(agents.effective(text).config)[real_time.STEM]
        assert section == real_time.Settings(namespaces=names)


def test_a_limit_that_leaves_nothing() -> None:
    """More than the kernel gives is refused with its place."""
    with pytest.raises(errors.ConfigError, match="maxPercent"):
        agents.effective("policies: {real_time: {limits: {maxPercent: 96}}}\n")


def test_a_workload_asks() -> None:
    """In the file by its own key, in a cluster by an annotation; not by default."""
    for text, asks in (("", False), (", realTime: true", True)):
        (workload,) = policy_settings.workloads(agents.effective(WORKLOAD.format(text)).config)
        assert workload.wishes.real_time is asks


@pytest.mark.parametrize(
    ("text", "asks", "problems"), [("true", True, 0), ("false", False, 0), ("yes", None, 1)]
)
def test_the_annotation(text: str, *, asks: bool | None, problems: int) -> None:
    """A word that is neither costs only itself, and is told."""
    complaints: list[str] = []
    wishes = registry.decode({}, {registry.REAL_TIME: text}, complaints)
    assert (bool(wishes.real_time), len(complaints)) == (bool(asks), problems)
