"""What pods and PodGroups say of gangs, in every form and with every kind of nonsense."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.kubeapi.pod_groups import GangForm, GatherLayer, MatchPolicy

NATIVE = {"schedulingGroup": {"podGroupName": "own"}}
LABELS = {pod_groups.POD_GROUP: "crd", pod_groups.LIGHT_NAME: "light"}
NOTES = {pod_groups.GANG_NAME: "note", pod_groups.GANG_MINIMUM: "2"}


def read(labels: Any = None, notes: Any = None, spec: Any = None) -> pod_groups.Membership:
    """The membership of a pod that has one."""
    membership = pod_groups.membership("ns", labels or {}, notes or {}, spec or {})
    assert membership is not None
    return membership


def test_the_first_form_that_names_a_gang_counts_and_empty_names_are_none() -> None:
    """Field, label of an object, light label, annotation: in this order, the others are ignored."""
    every = read(LABELS, NOTES, NATIVE)
    assert (every.id, every.key, every.form) == (
        "ns/own",
        "ns/own@scheduling.k8s.io",
        GangForm.NATIVE,
    )
    assert every.ignored == (GangForm.POD_GROUP, GangForm.LIGHT, GangForm.ANNOTATION)
    assert read(LABELS, NOTES).key == "ns/crd"
    assert read({**LABELS, pod_groups.POD_GROUP: ""}, NOTES).form is GangForm.LIGHT
    assert read({}, NOTES, {"schedulingGroup": None}).form is GangForm.ANNOTATION
    assert pod_groups.membership("ns", {}, {}, {"schedulingGroup": {}}) is None


def test_the_light_label_of_the_minimum_counts_before_the_annotation() -> None:
    """The two objectless forms may be mixed; an unreadable label hides the annotation."""
    labels = {pod_groups.LIGHT_NAME: "note", pod_groups.LIGHT_MINIMUM: "5"}
    assert read(labels, NOTES).minimum == 5
    assert read(labels, NOTES).ignored == ()
    assert read({pod_groups.LIGHT_NAME: "note"}, NOTES).minimum == 2
    assert read({**labels, pod_groups.LIGHT_MINIMUM: "five"}, NOTES).minimum is None


@pytest.mark.parametrize(
    ("spelled", "number"),
    [
        ("3", 3),
        ("+3", 3),
        ("-1", -1),
        ("007", 7),
        ("", None),
        (" 3", None),
        ("3.0", None),
        ("1_0", None),
        ("٣", None),
        ("2147483647", 2147483647),
        ("2147483648", None),
        ("9" * 4000, None),
        (True, None),
        (None, None),
    ],
)
def test_whole_numbers_are_those_of_go(spelled: object, number: int | None) -> None:
    """ASCII digits with a sign, 32 bits; nothing else is a minimum."""
    assert pod_groups.whole(spelled) == number


def test_annotations_that_cannot_be_read_are_as_if_they_were_missing_with_a_problem_each() -> None:
    """One broken annotation costs itself."""
    notes = {
        pod_groups.MODE: "loose",
        pod_groups.MATCH_POLICY: "never",
        pod_groups.GROUPS: '["ns/a", 3]',
        pod_groups.TOPOLOGY_SPEC: "{",
        pod_groups.TOTAL: "many",
    }
    stated = pod_groups.gang_annotations(notes)
    assert (stated.strict, stated.match_policy, stated.groups) == (True, None, ())
    assert (stated.gather, stated.total) == ((), 0)
    assert [problem.split(":")[0] for problem in stated.problems] == [
        f"annotation {key}"
        for key in (
            *(pod_groups.MODE, pod_groups.MATCH_POLICY, pod_groups.GROUPS),
            pod_groups.TOPOLOGY_SPEC,
        )
    ]


def test_annotations_say_mode_policy_group_and_topology() -> None:
    """The alias of the match policy counts where the other is missing."""
    stated = pod_groups.gang_annotations(
        {
            pod_groups.MODE: "NonStrict",
            f"{pod_groups.POD_GROUP}/match-policy": "only-waiting",
            pod_groups.GROUPS: '["ns/a", null, "ns/b"]',
            pod_groups.TOPOLOGY_SPEC: '{"GatherStrategy": [{"layer": "Block", "strategy":'
            ' "MustGather", "podCountMultiple": 8}]}',
        }
    )
    assert not stated.strict
    assert stated.match_policy is MatchPolicy.ONLY_WAITING
    assert stated.groups == ("ns/a", "ns/b")
    assert stated.gather == (GatherLayer("Block", "MustGather", 8),)


@pytest.mark.parametrize(
    ("spec", "minimum"),
    [
        ({"minMember": 3}, 3),
        ({}, 0),
        ({"minMember": None}, 0),
        ({"minMember": "3"}, None),
        ({"minMember": 2**40}, None),
        ("nonsense", None),
    ],
)
def test_a_minimum_that_cannot_be_read_is_never_none_needed(spec: Any, minimum: int | None) -> None:
    """Missing is 0, every pod passes alone; unreadable is not, as a pod must not pass alone."""
    body = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "metadata": {"name": "g"}}
    assert pod_groups.pod_group({**body, "spec": spec}).minimum == minimum


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [({"gang": {"minCount": 4}}, 4), ({"basic": {}}, 0), ({}, None), ({"gang": {}}, None)],
)
def test_kubernetes_own_pod_group(policy: Any, minimum: int | None) -> None:
    """A basic group needs nobody; one without a readable policy is not initialised."""
    group = pod_groups.pod_group(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "metadata": {"name": "g", "namespace": "ns", "generation": 2},
            "spec": {
                "schedulingPolicy": policy,
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
                "disruptionMode": "PodGroup",
                "priority": 7,
            },
        }
    )
    assert (group.key, group.native) == ("ns/g@scheduling.k8s.io", True)
    assert (group.minimum, group.topology_key, group.priority) == (minimum, "rack", 7)
    assert (group.whole, group.generation) == (True, 2)
