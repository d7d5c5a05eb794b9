"""What profiles make of a pod: in order, in whole profiles, and never a pod that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.scheduler.colocation import mutation, profile

Body = dict[str, Any]
BATCH = {"value": 5500, "preemptionPolicy": "Never"}
CLASSES: dict[str, Body] = {"koord-batch": BATCH, "koord-mid": {"value": 7500}}
EXTRA = {"name": "debug", "image": "i"}
EXTENDED = "node.koordinator.sh/extended-resource-spec"
NOTES = "annotations"


def made(pod: Body, *specs: Body, notes: Body | None = None) -> mutation.ColocatedPod:
    """A pod after profiles ``p0``, ``p1`` …, of which all have these annotations."""
    profiles = [
        profile.read({"metadata": {"name": f"p{at}", NOTES: notes or {}}, "spec": spec})
        for at, spec in enumerate(specs)
    ]
    space = mutation.namespace_of("d", None)
    return mutation.colocated(pod, reversed(profiles), space, CLASSES.get, "d/x/")


def pod(*, labels: Body | None = None, **resources: Any) -> Body:
    """A pod of one container."""
    container = {"name": "main", "resources": resources}
    return {"metadata": {"name": "x", "labels": labels or {}}, "spec": {"containers": [container]}}


def test_within_a_profile_each_step_sees_those_before_it() -> None:
    """Labels, copied keys, suffixes, scheduler, class, priorities; the patch is last."""
    spec = {
        "labels": {"a": "1"},
        NOTES: {"note": "n"},
        "labelKeysMapping": {"a": "b", "absent": "c"},
        "annotationKeysMapping": {"note": "copy"},
        "labelSuffixes": {"b": "-s", "absent": "-s"},
        "schedulerName": "koord-scheduler",
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "koordinatorPriority": 7,
        "patch": {"metadata": {"labels": {"koordinator.sh/priority": "8"}}},
    }
    after = made(pod(), spec)
    assert (after.profiles, after.faults) == (("p0",), ())
    assert after.body["metadata"]["labels"] == {
        "a": "1",
        "b": "1-s",
        "koordinator.sh/qosClass": "BE",
        "koordinator.sh/priority": "8",
    }
    assert after.body["metadata"][NOTES] == {"note": "n", "copy": "n"}
    spec = {key: value for key, value in after.body["spec"].items() if key != "containers"}
    assert spec == {
        "schedulerName": "koord-scheduler",
        "priorityClassName": "koord-batch",
        "priority": 5500,
        "preemptionPolicy": "Never",
    }


def test_profiles_apply_by_name_and_the_last_one_counts() -> None:
    """However they come; they select by what the pod had at first."""
    other = {"selector": {"matchLabels": {"a": "1"}}, "labels": {"c": "3"}}
    after = made(pod(), {"labels": {"a": "1"}}, {"labels": {"a": "2", "b": "2"}}, other)
    assert after.body["metadata"]["labels"] == {"a": "2", "b": "2"}


def test_a_patch_changes_the_container_of_its_name() -> None:
    """As a strategic merge patch: other containers and other fields stay."""
    env = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}
    after = made(pod(requests={"cpu": "1"}), {"patch": env})
    [container] = after.body["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"priorityClassName": "gone"}, "no PriorityClass is named 'gone'"),
        ({"probability": "x"}, "spec.probability"),
        ({"labels": {"a": "b c"}}, "metadata.labels"),
        ({"patch": {"metadata": {"labels": {"a": 1}}}}, "metadata.labels.a: expected a text"),
        ({"patch": {"spec": {"containers": "x"}}}, "$.spec.containers"),
        ({"patch": {"spec": {"containers": [1]}}}, "spec.patch does not fit a pod: an element"),
        ({"patch": {"spec": {"containers": 1, "$setElementOrder/containers": 2}}}, "containers"),
        ({"patch": {"spec": None}}, "spec.containers: must have one"),
        ({"patch": {"spec": {"containers": [{"name": "n"}]}}}, "spec.containers[1].image: must be"),
        ({"patch": {"spec": {"ephemeralContainers": [EXTRA]}}}, "ephemeralContainers: a new pod"),
        ({"patch": {"spec": {"tolerations": [{"operator": "?"}]}}}, "spec.tolerations[0].operator"),
        ({"patch": {"spec": {"$patch": "?"}}}, "spec.patch does not fit a pod: unknown"),
        ({"labelSuffixes": {"a": "x" * 63}}, "metadata.labels"),
        ({"patch": {"spec": {"priority": 9}}}, "spec.patch: a priority comes with a"),
        ({"patch": {"spec": {"priorityClassName": "gone"}}}, "no PriorityClass is named 'gone'"),
        ({"patch": {"spec": {"overhead": {"cpu": "1"}}}}, "spec.patch: overhead is that of the"),
        ({NOTES: {"k": "x" * (256 << 10)}}, "metadata.annotations: 262145 bytes"),
    ],
)
def test_a_profile_that_would_cost_the_pod_is_left_out_whole_and_the_rest_applies(
    spec: Body, fault: str
) -> None:
    """Its other fields, too: half a profile is another one."""
    before = pod(labels={"a": "1"})
    after = made(before, {"labels": {"x": "y"}, **spec}, {"labels": {"z": "1"}})
    assert after.profiles == ("p1",)
    assert after.body["metadata"]["labels"] == {"a": "1", "z": "1"}
    [left_out] = after.faults
    assert left_out.startswith("ClusterColocationProfile p0 is left out: ")
    assert fault in left_out


def test_a_patch_changes_neither_name_nor_status() -> None:
    """A server has looked at the name already."""
    meta = {"name": "y", "namespace": "other", "resourceVersion": "1"}
    patch = {"metadata": meta, "status": {"phase": "Running"}}
    after = made(pod(), {"patch": {**patch, "kind": "Node"}})
    assert after.body["metadata"]["name"] == "x"
    assert after.body["metadata"].keys() == {"name", "labels"}
    assert after.body.get("kind") is None


def test_a_priority_class_of_a_patch_brings_its_value() -> None:
    """A server has given the pod that of its own class already, and compares."""
    before = pod()
    before["spec"] |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    after = made(before, {"patch": {"spec": {"priorityClassName": "koord-batch", "priority": 1}}})
    assert after.faults == ()
    assert after.body["spec"] == {
        **before["spec"],
        "priorityClassName": "koord-batch",
        "priority": 5500,
        "preemptionPolicy": "Never",
    }


def test_a_fault_of_the_pod_itself_is_no_fault_of_the_profile() -> None:
    """The server refuses the pod, and says why."""
    for labels in ({"-": "x"}, {"koordinator.sh/priority-class": [1]}):
        after = made(pod(labels=labels), {"labels": {"a": "b"}}, {"labels": {"c": "d"}})
        assert (after.profiles, after.faults) == (("p0", "p1"), ())


BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"


@pytest.mark.parametrize(
    ("spec", "own", "wanted"),
    [
        (
            {"qosClass": "BE"},
            {"requests": {"cpu": "1500m", "memory": "1Gi", "x/y": "1"}},
            {"requests": {BATCH_CPU: "1500", BATCH_MEMORY: "1Gi", "x/y": "1"}},
        ),
        (
            {"priorityClassName": "koord-batch"},
            {"limits": {"cpu": "0.0015"}},
            {"limits": {BATCH_CPU: "2"}, "requests": {BATCH_CPU: "2"}},
        ),
        (
            {"priorityClassName": "koord-mid"},
            {"requests": {"cpu": 1}, "limits": {"cpu": 2}},
            {"requests": {"kubernetes.io/mid-cpu": "1000"},
             "limits": {"kubernetes.io/mid-cpu": "2000"}},
        ),
        ({"qosClass": "LS"}, {"requests": {"cpu": "1"}}, {"requests": {"cpu": "1"}}),
        ({"labels": {"a": "b"}}, {"requests": {"cpu": "1"}}, {"requests": {"cpu": "1"}}),
        ({"qosClass": "BE"}, {"requests": {"cpu": "x"}}, {"requests": {"cpu": "x"}}),
    ],
)  # fmt: skip
def test_batch_and_mid_pods_ask_for_what_is_offered_to_their_band(
    spec: Body, own: Body, wanted: Body
) -> None:
    """Thousandths, rounded up; a request that is missing is the limit."""
    [container] = made(pod(**own), spec).body["spec"]["containers"]
    assert container["resources"] == wanted


def test_batch_amounts_are_written_for_agents_and_overhead_stays_that_of_its_class() -> None:
    """Of the containers that run, not of init containers; another overhead costs the pod."""
    before = pod(requests={"cpu": "1"}, limits={"cpu": "2"})
    before["spec"] |= {
        "overhead": {"cpu": "100m"},
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}],
    }
    after = made(before, {"qosClass": "BE"}).body
    assert json.loads(after["metadata"][NOTES][EXTENDED]) == {
        "containers": {"main": {"requests": {BATCH_CPU: "1000"}, "limits": {BATCH_CPU: "2000"}}}
    }
    assert after["spec"]["overhead"] == {"cpu": "100m"}
    assert after["spec"]["initContainers"][0]["resources"]["requests"] == {BATCH_CPU: "3000"}


@pytest.mark.parametrize("key", ["requests", "limits"])
def test_what_a_pod_asks_for_as_a_whole_keeps_it_out_of_batch_and_mid(key: str) -> None:
    """Servers take no batch amounts there; other amounts, other bands, kept amounts are no bar."""
    before = pod(requests={"cpu": "1"})
    before["spec"]["resources"] = {key: {"cpu": "2", "hugepages-2Mi": "2Mi"}}
    after = made(before, {"qosClass": "BE"}, {"labels": {"a": "b"}})
    assert after.profiles == ("p1",)
    [left_out] = after.faults
    assert left_out.startswith("ClusterColocationProfile p0 is left out: spec.resources: cpu of a")
    assert after.body["spec"] == before["spec"]
    keeps = {"config.koordinator.sh/skip-update-resources": ""}
    assert made(before, {"qosClass": "BE"}, {}, notes=keeps).profiles == ("p0", "p1")
    del before["spec"]["resources"][key]["cpu"]
    assert made(before, {"qosClass": "BE"}).profiles == ("p0",)


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_huge_pages_keep_a_pod_out_of_batch_and_mid(kind: str) -> None:
    """Servers take them beside CPU or memory only, of which such a pod asks for none."""
    box = {"name": "b", "image": "i", "resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}}}
    before = pod(requests={"cpu": "1"})
    before["spec"][kind] = [*before["spec"].get(kind, []), box]
    after = made(before, {"priorityClassName": "koord-mid"}, {"labels": {"a": "b"}})
    assert after.profiles == ("p1",)
    assert "b.resources: huge pages need CPU or memory" in after.faults[0]
    assert after.body["spec"] == before["spec"]


def test_amounts_that_would_exceed_a_limit_of_the_pod_keep_it_out_of_batch() -> None:
    """A pod that limits what is offered, and CPU, asks for both as one."""
    own = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", BATCH_CPU: "100"}}
    assert made(pod(**own), {"qosClass": "BE"}).profiles == ("p0",)
    del own["limits"]["cpu"]
    [left_out] = made(pod(**own), {"qosClass": "BE"}).faults
    assert f"main.resources: {BATCH_CPU} 500 is above its limit 100" in left_out


def test_a_profile_may_leave_amounts_alone() -> None:
    """By an annotation of its own; and a pod of no profile keeps them in any case."""
    before = pod(labels={"koordinator.sh/qosClass": "BE"}, requests={"cpu": "1"})
    keeps = {"config.koordinator.sh/skip-update-resources": ""}
    for after in (made(before, {}, notes=keeps), made(before), made(before, {"probability": 0})):
        assert after.body["spec"] == before["spec"]
