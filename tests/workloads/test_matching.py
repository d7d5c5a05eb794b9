"""The annotation that says which processes a standalone workload is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.workloads import matching, poddecode

BODY = {
    "metadata": {"name": "web", "uid": "u1", "annotations": {"koordlet.io/match": "unit=a.scope"}}
}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("unit=nginx.service", "unit=nginx.service"),
        (" cgroup=web/nginx ", "cgroup=web/nginx"),
        ('{"unit": "nginx.service"}', "unit=nginx.service"),
        ('{"cgroup": "a=b"}', "cgroup=a=b"),
        ("", ""),
        (" ", ""),
    ],
)
def test_spellings(text: str, match: str) -> None:
    """JSON and the short one mean the same; nothing is no match."""
    assert match == matching.parse(text)


@pytest.mark.parametrize(
    "text", ["unit=", "pod=x", "[]", "{}", '{"unit":1}', '{"unit":"a","cgroup":"b"}', "[" * 100_000]
)
def test_what_is_no_match(text: str) -> None:
    """It is refused, and the annotation is named."""
    with pytest.raises(ValueError, match=matching.ANNOTATION):
        matching.parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("unit=nginx", "is not the full name of a unit"),
        ("unit=../a.service", "is not the full name of a unit"),
        ("unit=a/b.service", "is not the full name of a unit"),
        (f"unit={'a' * 250}.service", "is not the full name of a unit"),
        ("cgroup=/web", "is not a path relative to"),
        ('{"cgroup": "../x"}', "is not a path relative to"),
        ("cgroup=web/", "is not a path relative to"),
        ("cgroup=.", "is not a path relative to"),
        ("cgroup=a//b", "is not a path relative to"),
        ("cgroup=a\x1b[1m", "is not a path relative to"),
    ],
)
def test_what_can_match_nothing(text: str, why: str) -> None:
    """What no unit or cgroup can be called is refused, and shown without control characters."""
    with pytest.raises(ValueError, match=why) as refused:
        matching.parse(text)
    assert str(refused.value).isprintable()


@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_any_text(text: str) -> None:
    """It is a match, nothing, or refused: never anything else."""
    try:
        match = matching.parse(text)
    except ValueError:
        return
    assert not match or match.startswith(("unit=", "cgroup="))


@pytest.mark.parametrize("source", ["kubelet", "cluster"])
def test_pods_of_a_cluster_name_nobody_elses_cgroup(source: str) -> None:
    """The annotation counts in manifests of the operator's only; elsewhere it is a problem."""
    decoded = poddecode.from_object(BODY, source, "here")

    assert decoded.match == "pod=u1"
    assert any(matching.ANNOTATION in why for why in decoded.problems)
    assert poddecode.from_object(BODY, "manifest", "here").match == "unit=a.scope"
