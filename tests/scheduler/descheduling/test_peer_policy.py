"""Kubernetes' descheduler's cases of its policy: what is read of it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import manifests
from koordlet.model import errors
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.descheduling.evictor_settings import Protection
from koordlet.scheduler.descheduling.prometheus_source import PrometheusSource
from tests.kit.descheduling import Body, evicted, node, play, pod, policy

TEXT = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: nightly
  plugins: {deschedule: {enabled: [RemovePodsHavingTooManyRestarts, RemoveFailedPods]}}
  pluginConfig:
  - {name: RemoveFailedPods}
  - {name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 100}}
  - name: DefaultEvictor
    args: {nodeFit: true, evictSystemCriticalPods: true, evictFailedBarePods: true,
           evictLocalStoragePods: true, evictDaemonSetPods: true}
"""


def refusal(body: Body) -> str:
    """Why a policy is refused."""
    with pytest.raises(errors.ConfigError) as caught:
        configuration.read(body, "f.yaml")
    return str(caught.value)


def test_a_policy_is_read(tmp_path: Any) -> None:
    """Its evictor is there without a word; arguments that are missing have their defaults."""
    path = tmp_path / "policy.yaml"
    path.write_text(TEXT)
    settings = configuration.read_all(manifests.load(str(path)), str(path))
    (profile,) = settings.profiles
    assert (profile.name, profile.evictor.name, profile.evictor.node_fit) == (
        "nightly", "DefaultEvictor", True,
    )  # fmt: skip
    assert profile.evictor.protections == frozenset()
    names = [strategy.name for strategy in profile.strategies]
    assert names == ["RemovePodsHavingTooManyRestarts", "RemoveFailedPods", "ReservedResources"]


EVICTOR = {"enabled": ["DefaultEvictor"]}
USUAL = {
    *(Protection.LOCAL_STORAGE, Protection.SYSTEM_CRITICAL),
    *(Protection.FAILED_BARE, Protection.DAEMON_SET),
}
OFF = ["PodsWithLocalStorage", "DaemonSetPods"]
EXTRA = ["PodsWithPVC", "PodsWithoutPDB"]
MORE = {Protection.PVC, Protection.WITHOUT_BUDGET}
LESS = {Protection.SYSTEM_CRITICAL, Protection.FAILED_BARE}


@pytest.mark.parametrize(
    ("lists", "protections"),
    [
        ({"defaultDisabled": OFF}, LESS),
        ({"extraEnabled": EXTRA}, USUAL | MORE),
        ({"extraEnabled": EXTRA, "defaultDisabled": OFF}, LESS | MORE),
    ],
)
def test_protections_of_a_policy(lists: Body, protections: set[Protection]) -> None:
    """With the highest threshold that there is, and the evictor named at its points."""
    args = {"podProtections": lists, "priorityThreshold": {"value": 2_000_000_000}, "nodeFit": True}
    body = policy({}, args)
    body["profiles"][0]["plugins"] |= {"filter": EVICTOR, "preEvictionFilter": EVICTOR}
    (profile,) = configuration.read(body, "f").profiles
    assert profile.evictor.protections == protections


BOTH_LISTS = {"include": ["test1"], "exclude": ["test1"]}
KUBERNETES, PROMETHEUS = {"source": "KubernetesMetrics"}, "Prometheus"


def at(url: str, **more: Any) -> list[Body]:
    """A Prometheus."""
    where = {**({"url": url} if url else {}), **more}
    return [{"source": PROMETHEUS, "prometheus": where}]


def secret(**reference: str) -> Body:
    """Where its token is."""
    return {"authToken": {"secretReference": reference}}


GOOD_URL = "https://example.com:80"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (policy({}, {"priorityThreshold": {"value": 2_000_000_001}}),
         "args.priorityThreshold.value: 2000000001 is above 2000000000"),
        (policy({"RemoveFailedPods": {"namespaces": BOTH_LISTS}}), "only one of include"),
        (policy({"RemovePodsViolatingTopologySpreadConstraint": {"namespaces": BOTH_LISTS}}),
         "only one of include and exclude"),
        (policy({}, {"evictSystemCriticalPods": True,
                     "podProtections": {"extraEnabled": EXTRA, "defaultDisabled": OFF}}),
         "args.evictSystemCriticalPods: does not count beside podProtections"),
        (policy({}, {"podProtections": {"defaultDisabled": ["InvalidProtection"]}}),
         "'InvalidProtection' is none of"),
        (policy({}, {"podProtections": {"extraEnabled": ["InvalidProtection"]}}),
         "'InvalidProtection' is none of"),
        (policy({}, {"podProtections": {"defaultDisabled": ["PodsWithPVC"]}}),
         "'PodsWithPVC' is none of"),
        (policy({}, {"podProtections": {"extraEnabled": ["DaemonSetPods"]}}),
         "'DaemonSetPods' is none of"),
        (policy(metricsProviders=[KUBERNETES, KUBERNETES]),
         "metricsProviders[1].source: KubernetesMetrics is configured twice"),
        (policy(metricsCollector={"enabled": True}, metricsProviders=[KUBERNETES]),
         "does not go with metricsCollector.enabled"),
        (policy(metricsProviders=[{"source": PROMETHEUS}]),
         "metricsProviders[0].prometheus.url: is needed"),
        (policy(metricsProviders=at("")), "metricsProviders[0].prometheus.url: is needed"),
        (policy(metricsProviders=at("http://example.com:-80")),
         "prometheus.url: 'http://example.com:-80' is no URL"),
        (policy(metricsProviders=at(GOOD_URL, authToken={})), "secretReference.namespace: is need"),
        (policy(metricsProviders=at(GOOD_URL, **secret())), "secretReference.namespace: is needed"),
        (policy(metricsProviders=at(GOOD_URL, **secret(name="n"))), "namespace: is needed"),
        (policy(metricsProviders=at(GOOD_URL, **secret(namespace="n"))), ".name: is needed"),
        (policy(metricsProviders=[{"source": "Other"}]), "metricsProviders[0].source"),
        (policy(metricsProviders=[{}]), "metricsProviders[0].source: is missing"),
        # Enabled without arguments, where some are needed.
        ({**policy(), "profiles": [{"name": "p", "plugins": {
            "deschedule": {"enabled": ["RemovePodsHavingTooManyRestarts"]}}}]},
         "podRestartThreshold: must be at least 1"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_with_its_path(body: Body, message: str) -> None:
    """The first of several."""
    assert message in refusal(body)


def test_where_use_is_measured_is_read() -> None:
    """A Prometheus with its Secret; what the cluster measures, our agents report."""
    good = at(GOOD_URL, **secret(namespace="n", name="t"))
    read = configuration.read(policy(metricsProviders=[*good, KUBERNETES]), "f")
    assert read.prometheus == PrometheusSource(GOOD_URL, ("n", "t"))
    for quiet in ({"metricsProviders": [KUBERNETES]}, {"metricsCollector": {"enabled": True}}):
        assert configuration.read(policy(**quiet), "f").prometheus is None


# What runs of a profile, and in which order.

OLD = {"maxPodLifeTimeSeconds": 3600}
FAILED = {"phase": "Failed"}


@pytest.mark.parametrize(
    ("deschedule", "balance", "names"),
    [
        (["RemoveFailedPods", "PodLifeTime"], [], ["failed", "a0", "a1", "a2"]),
        (["PodLifeTime", "RemoveFailedPods"], [], ["failed", "a0", "a1", "a2"]),
        ([], ["RemoveDuplicates"], ["a2"]),
        (["RemoveFailedPods"], ["RemoveDuplicates"], ["failed", "a2"]),
        ([], [], []),
    ],
)
def test_only_what_is_enabled_runs_at_its_point(
    deschedule: list[str], balance: list[str], names: list[str]
) -> None:
    """All arguments are there, enabled or not; first all of one point, in their order."""
    strategies = {"PodLifeTime": OLD, "RemoveFailedPods": None, "RemoveDuplicates": None}
    body = policy(strategies)
    body["profiles"][0]["plugins"] = {
        "deschedule": {"enabled": deschedule}, "balance": {"enabled": balance},
    }  # fmt: skip
    bodies = [
        *(node("n1"), node("n2"), pod("failed", "n1", age=9000, image="j", status=FAILED)),
        *(pod(f"a{place}", "n1") for place in range(3)),
    ]
    result = play(bodies, body)
    assert [proposal.resident.pod.name for proposal in result.evicted] == names
    ran = [run.strategy for run in result.runs]
    assert ran == [*deschedule, *balance, "ReservedResources"]
    first = next(iter(result.evicted), None)
    assert first is None or first.strategy == (deschedule or balance)[0]


def test_profiles_run_one_after_the_other() -> None:
    """A pod that the first lets go is none of the second's."""
    body = policy({"PodLifeTime": OLD})
    (profile,) = body["profiles"]
    body["profiles"] = [{**profile, "name": name} for name in ("one", "two")]
    bodies = [node("n1"), node("n2"), pod("p", "n1")]
    assert evicted(bodies, body) == ["p"]
    assert [run.profile for run in play(bodies, body).runs if run.moved] == ["one"]
