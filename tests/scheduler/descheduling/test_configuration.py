"""Configurations of both dialects: taken unchanged, and each mistake named with its path."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import manifests
from koordlet.model import errors
from koordlet.scheduler.descheduling import configuration
from tests.kit import descheduling

#: The example of the peer's article, with its indentation repaired.
ARTICLE = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
dryRun: true
deschedulingInterval: 10s
leaderElection: {leaderElect: true, resourceName: koord-descheduler, resourceNamespace: koord}
clientConnection: {qps: 50, burst: 100}
profiles:
- name: koord-descheduler
  plugins:
    deschedule:
      enabled: [{name: RemovePodsHavingTooManyRestarts}]
    balance: {enabled: [{name: LowNodeLoad}]}
    evict: {disabled: [{name: "*"}], enabled: [{name: MigrationController}]}
    filter: {enabled: [{name: MigrationController}]}
  pluginConfig:
  - name: RemovePodsHavingTooManyRestarts
    args: {apiVersion: descheduler/v1alpha2, kind: X, podRestartThreshold: 10}
  - name: LowNodeLoad
    args: {lowThresholds: {cpu: 20}, highThresholds: {cpu: 50}}
  - name: MigrationController
    args: {evictQPS: "10", evictBurst: 1, maxMigratingPerNode: 3, namespaces: {exclude: [kube]}}
"""
THRESHOLDS = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}


def peer(**profile: Any) -> dict[str, Any]:
    """Koordinator's dialect with one profile."""
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration",
            "profiles": [profile]}  # fmt: skip


def refusal(body: dict[str, Any]) -> str:
    """How a configuration is refused."""
    with pytest.raises(errors.ConfigError) as caught:
        configuration.read(body, "f.yaml")
    return str(caught.value)


def test_the_peers_file_is_taken_unchanged(tmp_path: Any) -> None:
    """Interval, lease, strategies in the order of their points, and the evictor's limits."""
    path = tmp_path / "koord.yaml"
    path.write_text(ARTICLE)
    settings = configuration.read_all(manifests.load(str(path)), str(path))
    (profile,) = settings.profiles
    assert (settings.dry_run, settings.interval_seconds) == (True, 10.0)
    assert settings.election is not None
    assert (settings.election.name, settings.election.namespace) == ("koord-descheduler", "koord")
    names = [strategy.name for strategy in profile.strategies]
    # The last one is ours, and only shows.
    assert names == ["RemovePodsHavingTooManyRestarts", "LowNodeLoad", "ReservedResources"]
    assert (profile.name, profile.several) == ("koord-descheduler", False)
    assert profile.evictor.migration.max_per_node == 3
    assert not profile.evictor.pods.namespaces.admits("kube")


def test_upstreams_policy_in_a_config_map_is_the_policy() -> None:
    """The key ``policy.yaml`` holds it, as the peer's chart deploys it."""
    text = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool=a
maxNoOfPodsToEvictPerNode: 5
profiles:
- name: p
  pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 60}}]
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""
    body = {"kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"policy.yaml": text}}
    settings = configuration.read_all([body], "cm")
    assert settings.limits.per_node == 5
    assert [each.several for each in settings.profiles] == [True]


@pytest.mark.parametrize(
    ("strategies", "where", "what"),
    [
        ({"PodLifeTime": {}}, "profiles[0].pluginConfig[0].args", "at least one filtering"),
        ({"PodLifeTime": {"states": ["Gone"]}}, "args.states", "'Gone' is none of"),
        ({"PodLifeTime": {"maxPodLifeTimeSecond": 1}}, "args.maxPodLifeTimeSecond", "is not known"),
        (
            {"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 0}},
            "args.podRestartThreshold", "at least 1",
        ),
        (
            {"RemoveFailedPods": {"namespaces": {"include": ["a"], "exclude": ["b"]}}},
            "args.namespaces", "only one of include and exclude",
        ),
        ({"RemovePodsViolatingNodeAffinity": {}}, "args.nodeAffinityType", "is needed"),
        (
            {"RemovePodsViolatingNodeTaints": {"includedTaints": ["a"], "excludedTaints": ["b"]}},
            "args.includedTaints", "only one of",
        ),
        (
            {"LowNodeUtilization": {**THRESHOLDS, "thresholds": {"cpu": 60}}},
            "args.thresholds.cpu", "60 is above targetThresholds.cpu, which is 50",
        ),
        (
            {"LowNodeUtilization": {**THRESHOLDS, "targetThresholds": {"memory": 50}}},
            "args.targetThresholds", "cpu has a value in thresholds and none here",
        ),
        (
            {"LowNodeUtilization": {**THRESHOLDS, "thresholds": {"cpu": 101}}},
            "args.thresholds", "from 0 to 100",
        ),
        (
            {"LowNodeUtilization": {**THRESHOLDS, "evictableNamespaces": {"include": ["a"]}}},
            "args.evictableNamespaces.include", "only exclude",
        ),
        *(
            (
                {"LowNodeUtilization": {
                    **THRESHOLDS, "metricsUtilization": {"source": "KubernetesMetrics", key: value}
                }},
                f"args.metricsUtilization.{key}", what,
            )
            for key, value, what in (
                ("metricsServer", True, "source takes its place"),
                ("prometheus", {"query": "up"}, "does not count with source KubernetesMetrics"),
            )
        ),
        (
            {"ScaleDownBinPack": {"strategy": "EvictDirectly"}},
            "args.maxPodsToEvict", "at least 1 with strategy EvictDirectly",
        ),
        (
            {"FragmentationAware": {"resources": ["cpu", "cpu"]}},
            "args.resources", "listed twice",
        ),
        (
            {"LowNodeLoad": {"nodeMetricExpirationSeconds": 0}},
            "args.nodeMetricExpirationSeconds", "0",
        ),
        ({"HighNodeUtilization": {}}, "args.thresholds", "no resource threshold"),
        (
            {"RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["Maybe"]}},
            "args.constraints", "'Maybe'",
        ),
    ],
)  # fmt: skip
def test_a_mistake_in_arguments_names_its_path(
    strategies: dict[str, Any], where: str, what: str
) -> None:
    """Nothing is guessed: the first mistake refuses the file."""
    message = refusal(descheduling.policy(strategies))
    assert where in message
    assert what in message


def test_a_mistake_in_the_frame_names_its_path() -> None:
    """Kinds, versions, names of plugins and of profiles."""
    assert "kind: 'X' is none of" in refusal({"apiVersion": "descheduler/v1alpha2", "kind": "X"})
    assert "apiVersion: 'v1'" in refusal({"apiVersion": "v1", "kind": "DeschedulerPolicy"})
    unknown = refusal(peer(plugins={"balance": {"enabled": [{"name": "LowNodeLoads"}]}}))
    assert "profiles[0].plugins.balance.enabled" in unknown
    assert "did you mean 'LowNodeLoad'?" in unknown
    wrong = refusal(peer(plugins={"deschedule": {"enabled": ["RemoveDuplicates"]}}))
    assert "RemoveDuplicates takes part in balance, not in deschedule" in wrong
    twice = peer(name="a")
    twice["profiles"] *= 2
    assert "two profiles are named 'a'" in refusal(twice)
    both = peer(plugins={"evict": {"enabled": ["MigrationController", "DefaultEvictor"]}})
    assert "exactly one evictor" in refusal(both)
    again = peer(plugins={"balance": {"enabled": ["LowNodeLoad", {"name": "LowNodeLoad"}]}})
    assert "balance.enabled: plugin 'LowNodeLoad' is listed twice" in refusal(again)
    args = {"name": "LowNodeLoad", "args": {}}
    assert "is configured twice" in refusal(peer(pluginConfig=[args, args]))
    assert "DNS subdomain" in refusal({**peer(), "nodeSelector": {"matchLabels": {"a/b/c": "d"}}})
    top = descheduling.policy(maxNoOfPodsToEvictPerNod=1)
    assert "maxNoOfPodsToEvictPerNod: is not known" in refusal(top)
    late = descheduling.policy()
    late["profiles"][0]["pluginConfig"].append({"name": "Nobody", "args": {}})
    assert "plugin 'Nobody' is unknown" in refusal(late)


def test_rules_of_one_evictor_hold_with_the_way_of_the_other() -> None:
    """Koordinator's profile may filter by upstream's rules and migrate by its own."""
    settings = configuration.read(
        peer(
            plugins={"filter": {"enabled": ["DefaultEvictor"]}},
            pluginConfig=[
                {"name": "DefaultEvictor", "args": {"minReplicas": 3}},
                {"name": "MigrationController", "args": {"defaultJobMode": "EvictDirectly"}},
            ],
        ),
        "f",
    )
    (profile,) = settings.profiles
    assert (profile.evictor.min_replicas, profile.evictor.migrates) == (3, True)
    assert profile.evictor.migration.mode == "EvictDirectly"


def test_how_pods_go_is_read_and_a_file_that_does_nothing_is_a_warning() -> None:
    """Nothing is dropped in silence."""
    deletes = {"name": "MigrationController", "args": {"evictionPolicy": "Delete"}}
    settings = configuration.read(
        {**peer(pluginConfig=[deletes]), "gracePeriodSeconds": 5}, "f.yaml"
    )
    assert (settings.profiles[0].evictor.policy, settings.grace_seconds) == ("Delete", 5)
    assert settings.warnings == ()
    empty = configuration.read({**peer(), "profiles": []}, "f.yaml")
    assert empty.warnings == ("f.yaml: there is no profile, so nothing is done",)


def test_several_documents_are_refused() -> None:
    """Which one counts would be a guess."""
    with pytest.raises(errors.ConfigError, match="2 documents, and one is expected"):
        configuration.read_all([descheduling.policy(), descheduling.policy()], "f")
