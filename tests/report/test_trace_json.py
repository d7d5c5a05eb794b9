"""What of a trace is shown: one policy, one group with those inside, however it is spelled."""

from __future__ import annotations

import pytest

from koordlet.model import action
from koordlet.report import trace_json
from tests.kit import moments


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("/kubepods/burstable", "kubepods/burstable"),
        ("kubepods/", "kubepods"),
        ("/sys/fs/cgroup/cpuset/kubepods/a", "kubepods/a"),
        ("/sys/fs/cgroup/cpuset", ""),
        ("/", ""),
    ],
)
def test_a_group_is_named_by_itself_or_by_its_directory(path: str, group: str) -> None:
    """The slashes around it do not matter."""
    assert trace_json.group_of(moments.V1, path) == group


@pytest.mark.parametrize(
    ("choice", "shown"),
    [
        (trace_json.ALL, True),
        (trace_json.Choice(policy="p"), True),
        (trace_json.Choice(policy="q"), False),
        (trace_json.Choice(group="a"), True),
        (trace_json.Choice(group="a/b"), True),
        (trace_json.Choice(group="a/b/c"), False),
        (trace_json.Choice(group="a/bb"), False),
        (trace_json.Choice(group=""), True),
        (trace_json.Choice(policy="q", group="a"), False),
    ],
)
def test_a_choice_takes_a_policy_and_a_group_with_those_inside(
    choice: trace_json.Choice, *, shown: bool
) -> None:
    """Both have to fit where both are given."""
    write = action.WriteFile(target="/t", value="1", policy="p", reason="r", group="a/b")

    assert choice.has(write) is shown
