"""Policies of admission cover what the role lets an agent write.

Covers: ``deploy/agent/admission.yaml`` against the role. Does not cover: what a real server makes
of them (``tests/cluster``), and evictions, which no policy can bind.
"""

from __future__ import annotations

from tests.deploy import overlays
from tests.deploy.documents import DEPLOY, documents, rules

POLICIES = documents("agent/admission.yaml")
ACCOUNT = "system:serviceaccount:koordlet-system:koordlet"
#: Why each is not bound to a node.
UNBOUND = {("", "pods/eviction", "create")}
WRITING = {"create": "CREATE", "patch": "UPDATE", "update": "UPDATE", "delete": "DELETE"}


def covered() -> set[tuple[str, str, str]]:
    """(group, resource, operation) of all policies."""
    return {
        (group, resource, operation)
        for policy in POLICIES
        if policy["kind"] == "ValidatingAdmissionPolicy"
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for operation in rule["operations"]
    }


def test_every_write_is_bound() -> None:
    """Whatever a role or a component lets an agent write, a policy looks at, but for evictions."""
    granted = list(rules("daemonset.yaml"))
    for document in overlays.built(DEPLOY / "overlays" / "taints"):
        if document["kind"] == "ClusterRole":
            granted += document["rules"]
    writes = {
        (group, resource, verb)
        for rule in granted
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in WRITING
    }

    unbound = {
        (group, resource, verb)
        for group, resource, verb in writes
        if (group, resource, WRITING[verb]) not in covered()
    }
    assert unbound == UNBOUND


def test_policies_are_in_force_and_about_the_agents() -> None:
    """Each has a binding that denies, fails closed, and is about the account that is deployed."""
    (account,) = (
        document for document in documents("daemonset.yaml") if document["kind"] == "ServiceAccount"
    )
    where = account["metadata"]
    policies = {p["metadata"]["name"]: p["spec"] for p in POLICIES if "Binding" not in p["kind"]}
    bindings = {b["spec"]["policyName"]: b["spec"] for b in POLICIES if "Binding" in b["kind"]}

    assert f"system:serviceaccount:{where['namespace']}:{where['name']}" == ACCOUNT
    assert policies.keys() == bindings.keys()
    for name, policy in policies.items():
        assert bindings[name]["validationActions"] == ["Deny"]
        assert policy["failurePolicy"] == "Fail"
        (condition,) = policy["matchConditions"]
        assert f'request.userInfo.username == "{ACCOUNT}"' == condition["expression"]
    names = {document["metadata"]["name"] for document in overlays.built(DEPLOY / "agent")}
    assert policies.keys() <= names, "the agent's kustomization has them"
