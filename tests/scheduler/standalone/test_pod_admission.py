"""Admission of new pods as an API server has it: runtime classes, label keys, the switches."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.cli import scheduler as options
from koordlet.kubeapi import refusals
from koordlet.scheduler.standalone import pod_admission

Body = dict[str, Any]
NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
VM: Body = {
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    "scheduling": {
        "nodeSelector": {"runtime": "vm"},
        "tolerations": [{"key": "vm", "operator": "Exists"}],
    },
}


def test_runtime_class_gives_overhead_labels_and_tolerations() -> None:
    """Beside those of the pod itself; what it has already is not doubled."""
    own = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "x", "operator": "Exists"}]}
    spec = pod_admission.with_runtime_class(own, VM)
    assert spec == {
        "overhead": {"cpu": "250m", "memory": "120Mi"},
        "nodeSelector": {"disk": "ssd", "runtime": "vm"},
        "tolerations": [{"key": "x", "operator": "Exists"}, {"key": "vm", "operator": "Exists"}],
    }
    assert pod_admission.with_runtime_class(spec, VM) == spec


def test_node_selector_against_that_of_the_class_is_refused() -> None:
    """No node has both values."""
    with pytest.raises(refusals.Forbidden) as refusal:
        pod_admission.with_runtime_class({"nodeSelector": {"runtime": "runc"}}, VM)
    assert (
        "conflict: runtimeClass.scheduling.nodeSelector[runtime] = vm;"
        " pod.spec.nodeSelector[runtime] = runc"
    ) in str(refusal.value)


@pytest.mark.parametrize(
    ("own", "runtime", "taken"),
    [
        ({"cpu": "0.25", "memory": "125829120"}, VM, True),
        ({"cpu": "300m", "memory": "120Mi"}, VM, False),
        ({"cpu": "250m"}, VM, False),
        ({}, {}, True),
        ({"cpu": "250m"}, {}, False),
    ],
)
def test_own_overhead_must_be_that_of_the_class(own: Body, runtime: Body, *, taken: bool) -> None:
    """Amounts count, not how they are written."""
    if taken:
        pod_admission.with_runtime_class({"overhead": own}, runtime)
        return
    with pytest.raises(refusals.Invalid, match=r"spec\.overhead"):
        pod_admission.with_runtime_class({"overhead": own}, runtime)


def _term(**keys: Any) -> Body:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **keys}


def test_label_keys_are_merged_into_the_selectors() -> None:
    """As In and NotIn of the pod's own values; a key that the pod has not as a label is ignored."""
    term = _term(matchLabelKeys=["hash", "gone", {"no": "key"}], mismatchLabelKeys=["tenant"])
    spread = _term(matchLabelKeys=["hash"])
    spec = {
        "affinity": {
            "podAffinity": {NEEDS: [term]},
            "podAntiAffinity": {WISHES: [{"weight": 5, "podAffinityTerm": term}]},
        },
        "topologySpreadConstraints": [spread],
    }
    labels = {"app": "web", "hash": "6f", "tenant": "t"}
    same = {"key": "hash", "operator": "In", "values": ["6f"]}
    other = {"key": "tenant", "operator": "NotIn", "values": ["t"]}
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [same, other]}

    merged = pod_admission.with_label_keys(spec, labels)

    affinity = merged["affinity"]
    assert affinity["podAffinity"][NEEDS] == [{**term, "labelSelector": selector}]
    assert affinity["podAntiAffinity"][WISHES] == [
        {"weight": 5, "podAffinityTerm": {**term, "labelSelector": selector}}
    ]
    assert merged["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [same]
    assert pod_admission.with_label_keys(merged, labels) == merged


def test_label_key_that_the_selector_has_already_is_refused() -> None:
    """By the path of the term."""
    term = _term(matchLabelKeys=["app"])
    spec = {"affinity": {"podAffinity": {NEEDS: [_term(), term]}}}
    with pytest.raises(refusals.Invalid, match=r"\[1\]\.matchLabelKeys: .* 'app' as well"):
        pod_admission.with_label_keys(spec, {"app": "web"})


def test_pod_without_terms_is_as_it_was() -> None:
    """Nothing is added to nearly every pod."""
    spec = {"containers": [], "affinity": {"nodeAffinity": {}}}
    assert pod_admission.with_label_keys(spec, {"app": "web"}) == spec
    assert pod_admission.with_runtime_class(spec, {}) == spec


def test_extended_resources_are_tolerated() -> None:
    """By name; Kubernetes' own resources have no taints of this kind."""
    asks = {"cpu": "1", "example.com/fpga": "1", "kubernetes.io/batch-cpu": "1"}
    spec = {
        "containers": [{"resources": {"requests": asks}}],
        "initContainers": [{"resources": {"requests": {"example.com/dsp": "2"}}}],
    }
    switch = pod_admission.SWITCHES["ExtendedResourceToleration"]
    assert switch(spec)["tolerations"] == [
        {"key": "example.com/dsp", "operator": "Exists"},
        {"key": "example.com/fpga", "operator": "Exists"},
    ]
    assert switch(switch(spec)) == switch(spec)


def test_required_anti_affinity_is_of_one_node() -> None:
    """Who keeps others off a whole zone is refused; who would rather be alone there is not."""
    switch = pod_admission.SWITCHES["LimitPodHardAntiAffinityTopology"]
    host, zone = {"topologyKey": "kubernetes.io/hostname"}, {"topologyKey": "zone"}
    wish = {"weight": 1, "podAffinityTerm": zone}
    spec = {"affinity": {"podAntiAffinity": {NEEDS: [host], WISHES: [wish]}}}
    assert switch(spec) == spec
    wide = {"affinity": {"podAntiAffinity": {NEEDS: [host, zone]}}}
    with pytest.raises(refusals.Forbidden, match=r"\[1\]\.topologyKey: 'zone' is not allowed"):
        switch(wide)


def test_switches_are_those_that_the_command_line_offers() -> None:
    """The command line names them without loading them."""
    assert pod_admission.SWITCHES.keys() == set(options.ADMISSION_PLUGINS)
