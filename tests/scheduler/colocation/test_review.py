"""An AdmissionReview is answered for its pod, and lets it through whatever it holds."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from koordlet.scheduler.colocation import review
from koordlet.scheduler.colocation.mutation import ColocatedPod
from tests.kit.apiserver import jsonpatch

Body = dict[str, Any]
PODS = {"group": "", "version": "v1", "resource": "pods"}


def asked(**more: Any) -> Body:
    """A request for a new pod."""
    return {"uid": "u", "operation": "CREATE", "resource": PODS, "namespace": "d", **more}


def whole(request: object, **more: Any) -> Body:
    """Its review."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": request,
        **more,
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"spec": {"a": 1}}, {"metadata": {"labels": {"x": "y"}}, "spec": {"a": 1}}),
        ({"metadata": {"labels": {}}}, {"metadata": {"labels": {"x": "y"}}}),
        ({"spec": {"a": 1, "b~1/c": 2}}, {"spec": {"a": [2], "b~1/c": 3}}),
        ({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1}}),
    ],
)
def test_the_patch_makes_the_one_of_the_other(before: Body, after: Body) -> None:
    """Members that are equal are not named."""
    response = review.answer(asked(), before, ColocatedPod(body=after))["response"]
    operations = json.loads(base64.b64decode(response["patch"]))
    assert jsonpatch.apply(before, operations) == after
    assert (response["allowed"], response["uid"], response["patchType"]) == (True, "u", "JSONPatch")
    assert len(operations) == (2 if "b~1/c" in before.get("spec", {}) else 1)


def test_nothing_changed_is_no_patch_and_faults_are_warnings() -> None:
    """Short, and on one line of a terminal."""
    made = ColocatedPod(body={"spec": {}}, faults=("bad\nprofile", "x" * 999))
    response = review.answer(asked(), {"spec": {}}, made)["response"]
    assert response == {"uid": "u", "allowed": True, "warnings": ["bad\\nprofile", "x" * 256]}


@pytest.mark.parametrize(
    "body",
    [
        *(None, 1, [], {}, {"kind": "AdmissionReview"}),
        *(whole(None), whole({}), whole([1]), whole(asked(), kind="Pod")),
        whole(asked(), apiVersion="admission.k8s.io/v1beta1"),
    ],
)
def test_what_is_no_review_is_refused_as_such(body: object) -> None:
    """There is no UID to answer to, or no form that the caller reads."""
    with pytest.raises(ValueError, match=r"AdmissionReview|apiVersion"):
        review.request(body)


@pytest.mark.parametrize(
    "more",
    [
        *({"operation": "UPDATE"}, {"object": None}, {"object": [1]}),
        *({"resource": {**PODS, "group": "apps"}}, {"resource": {**PODS, "resource": "nodes"}}),
        *({"subResource": "binding"}, {"resource": 3}),
    ],
)
def test_all_but_the_creation_of_pods_passes_untouched(more: Body) -> None:
    """Allowed, without a patch."""
    request = asked(**{"object": {"spec": {}}, **more})
    assert review.pod(request) is None
    response = review.answer(request, None, None)["response"]
    assert response == {"uid": "u", "allowed": True}


def test_pods_of_a_controller_are_drawn_each_for_itself() -> None:
    """They have no name yet: their request tells them apart."""
    nameless = {"metadata": {"generateName": "web-"}}
    draws = {review.identity(asked(uid=uid), nameless) for uid in ("u", "v")}
    assert len(draws) == 2
    assert review.identity(asked(), {"metadata": {"name": "x"}}) == "d/x/"
