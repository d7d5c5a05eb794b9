"""KubeSchedulerConfiguration: what is read, what is warned of, what is an error."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.loop import configuration
from koordlet.scheduler.plugins.coscheduling import Coscheduling
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources
from tests.kit import clusters
from tests.kit.clusters import node, pod, spread


def config(**profile: Any) -> dict[str, Any]:
    """One profile."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", **profile}],
    }


def test_weights() -> None:
    """A score's weight is what the profile says."""
    body = config(plugins={"score": {"enabled": [{"name": "TaintToleration", "weight": 7}]}})
    plain = clusters.scores("p", node("a"), pod("p"))

    assert plain["a"] + 400 == clusters.scores("p", node("a"), pod("p"), config=body)["a"]


def test_disabled_filters_do_not_refuse() -> None:
    """Without its filter a taint is no obstacle."""
    body = config(plugins={"filter": {"disabled": [{"name": "TaintToleration"}]}})
    tainted = node("a", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})

    assert clusters.places(tainted, pod("p"), config=body) == {"p": "a"}


def test_what_we_lack() -> None:
    """Disabled: a warning. Enabled, or unknown: an error that names it."""
    off = config(plugins={"multiPoint": {"disabled": [{"name": "DefaultPreBind"}]}})
    assert any("DefaultPreBind" in warning for warning in configuration.read(off, "f").warnings)
    for name in ("DefaultPreBind", "NoSuchPlugin"):
        on = config(plugins={"score": {"enabled": [{"name": name}]}})
        with pytest.raises(errors.ConfigError, match=name):
            configuration.read(on, "f")


def test_scores_of_storage_capacity_are_read_and_warned_of() -> None:
    """The gate is alpha and off; a shape that makes no sense is refused all the same."""

    def shaped(*points: tuple[int, int]) -> dict[str, Any]:
        shape = [{"utilization": use, "score": score} for use, score in points]
        return config(pluginConfig=[{"name": "VolumeBinding", "args": {"shape": shape}}])

    [warning] = configuration.read(shaped((0, 0), (100, 10)), "f").warnings
    assert "VolumeBinding: shape has no effect" in warning
    with pytest.raises(errors.ConfigError, match="a score is from 0 to 10"):
        configuration.read(shaped((0, 11)), "f")


def test_claims_are_waited_for_no_less_than_no_time() -> None:
    """As kube-scheduler has it; what is no number is refused as well."""
    for seconds in (-1, "10m"):
        args = {"bindTimeoutSeconds": seconds}
        with pytest.raises(errors.ConfigError, match="bindTimeoutSeconds"):
            configuration.read(config(pluginConfig=[{"name": "VolumeBinding", "args": args}]), "f")


def test_added_affinity() -> None:
    """What the profile adds has a message of its own."""
    term = {"matchExpressions": [{"key": "x", "operator": "Exists"}]}
    needs = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    body = config(pluginConfig=[{"name": "NodeAffinity", "args": {"addedAffinity": needs}}])

    assert "1 node(s) didn't match scheduler-enforced node affinity" in clusters.message(
        "p", node("a"), pod("p"), config=body
    )


def test_pods_of_other_schedulers_are_left_alone() -> None:
    """Neither placed nor pending."""
    outcome = clusters.tried(node("a"), pod("p", schedulerName="other"), config=config())

    assert not outcome["placements"]
    assert not outcome["pending"]


def test_preemption_can_be_disabled() -> None:
    """Without DefaultPreemption nobody is a victim."""
    body = config(plugins={"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}})
    outcome = clusters.tried(
        node("a"), pod("o", on="a", cpu="4"), pod("p", cpu="1", priority=9), config=body
    )

    assert not outcome["preemptions"]
    assert "preemption" not in outcome["pending"][0]["message"]


def test_backoff_is_as_it_is_said() -> None:
    """Seconds of the first one and of the longest; what makes no sense is refused."""
    body = {**config(), "podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 5}
    backoff = configuration.read(body, "test").backoff
    assert [backoff.expiry(0.0, n) for n in range(1, 5)] == [2, 4, 5, 5]
    with pytest.raises(errors.ConfigError, match="podInitialBackoffSeconds 20"):
        configuration.read({**config(), "podInitialBackoffSeconds": 20}, "test")


def test_a_share_of_the_nodes() -> None:
    """For comparison: 150 of 300 nodes are ranked, then those that come after them."""
    body = {**config(), "percentageOfNodesToScore": 50}
    chosen = configuration.read(body, "test")
    assert any("50 % of the nodes" in warning for warning in chosen.warnings)
    best = [node(f"n{i}", cpu="64" if i in {200, 299} else "4") for i in range(300)]
    places = clusters.places(*best, pod("p", cpu="1"), pod("q", cpu="1"), config=body)

    assert places == {"p": "n0", "q": "n200"}
    assert clusters.places(*best, pod("p", cpu="1"), config=config()) == {"p": "n200"}
    with pytest.raises(errors.ConfigError, match="101 is not a percentage"):
        configuration.read({**config(), "percentageOfNodesToScore": 101}, "test")


def test_how_many_nodes_are_tried_for_preemption() -> None:
    """With one, the first that helps is taken, though the second has a less important victim."""
    world = [
        *(node("a"), node("b")),
        pod("important", on="a", cpu="4", priority=5),
        pod("unimportant", on="b", cpu="4", priority=1),
        pod("p", cpu="1", priority=9),
    ]

    def victims(**args: int) -> list[str]:
        several = [{"name": "DefaultPreemption", "args": args}]
        return [
            victim
            for each in clusters.tried(*world, config=config(pluginConfig=several))["preemptions"]
            for victim in each["victims"]
        ]

    assert victims() == ["d/unimportant"]
    assert victims(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=1) == ["d/important"]
    with pytest.raises(errors.ConfigError, match="not both of them 0"):
        victims(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=0)
    with pytest.raises(errors.ConfigError, match="101 %"):
        victims(minCandidateNodesPercentage=101)


def test_fields_that_are_not_there_are_told() -> None:
    """A slip changes nothing, and is not silent; arguments are given once."""
    body = {**config(), "percentageOfNodeToScore": 50}
    [warning] = configuration.read(body, "test").warnings
    assert "'percentageOfNodeToScore' is an unknown field" in warning
    body = config(plugin={})
    [warning] = configuration.read(body, "test").warnings
    assert "a profile: 'plugin' is an unknown field" in warning
    twice = [{"name": "NodeResourcesFit"}, {"name": "NodeResourcesFit"}]
    with pytest.raises(errors.ConfigError, match="repeated config for plugin NodeResourcesFit"):
        configuration.read(config(pluginConfig=twice), "test")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"plugins": {"score": {"enabled": [{"name": "ImageLocality"}] * 2}}}, "more than once"),
        (
            {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": -1}]}}},
            "a weight of -1 for plugin 'ImageLocality'",
        ),
        (
            {
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultingType": "List",
                            "defaultConstraints": [spread("zone")],
                        },
                    }
                ]
            },
            "the selector is that of each pod's owners",
        ),
    ],
)
def test_what_the_peer_refuses_is_refused(fields: dict[str, Any], why: str) -> None:
    """Each with a word about what is wrong."""
    with pytest.raises(errors.ConfigError, match=why):
        configuration.read(config(**fields), "test")


def test_no_parallelism_is_none() -> None:
    """It changes nothing here, and is a slip."""
    with pytest.raises(errors.ConfigError, match="parallelism"):
        configuration.read({**config(), "parallelism": 0}, "test")


def test_the_peers_coscheduling_is_taken_as_they_configure_it() -> None:
    """Its name as the order of the queue is accepted; unknown arguments are warnings."""
    body = {
        "kind": "KubeSchedulerConfiguration",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "profiles": [
            {
                "schedulerName": "gangs",
                "plugins": {
                    "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                    "queueSort": {
                        "enabled": [{"name": "Coscheduling"}],
                        "disabled": [{"name": "*"}],
                    },
                },
                "pluginConfig": [
                    {
                        "name": "Coscheduling",
                        "args": {"permitWaitingTimeSeconds": 10, "colour": "red"},
                    }
                ],
            }
        ],
    }
    read = configuration.read(body, "test")
    plugin = read.profiles["gangs"].find(Coscheduling)
    assert plugin is not None
    assert plugin.arguments.wait_seconds == 10.0
    assert read.warnings == ("test: Coscheduling: 'colour' is unknown and ignored",)


SHARED = "all searches of one look share 3 s"


@pytest.mark.parametrize(
    ("args", "patience", "warnings"),
    [
        ({}, 600.0, ()),
        ({"bindingTimeout": "30s", "filterTimeout": "10s"}, 30.0, ()),
        (
            {"filterTimeout": "1m", "colour": "red"},
            600.0,
            (
                "test: DynamicResources: 'colour' is unknown and ignored",
                f"test: DynamicResources: filterTimeout has no effect: {SHARED}",
            ),
        ),
    ],
)
def test_how_long_devices_may_take_is_as_a_profile_says(
    args: dict[str, str], patience: float, warnings: tuple[str, ...]
) -> None:
    """As the arguments of kube-scheduler spell it; the other one has no effect, and says so."""
    read = configuration.read(
        config(pluginConfig=[{"name": "DynamicResources", "args": args}]), "test"
    )
    plugin = read.profiles["default-scheduler"].find(DynamicResources)
    assert plugin is not None
    assert plugin.patience == patience
    assert read.warnings == warnings


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"bindingTimeout": "500ms"}, "bindingTimeout: must be at least 1 second"),
        ({"filterTimeout": "-1s"}, "filterTimeout: must be zero or positive"),
        ({"filterTimeout": "soon"}, "filterTimeout: not a duration"),
    ],
)
def test_times_for_devices_that_kube_scheduler_refuses(args: dict[str, str], why: str) -> None:
    """They are slips here as well."""
    body = config(pluginConfig=[{"name": "DynamicResources", "args": args}])
    with pytest.raises(errors.ConfigError, match=why):
        configuration.read(body, "test")


def test_coscheduling_that_is_disabled_leaves_the_profile() -> None:
    """Pods of its forms are then refused by name."""
    body = {
        "kind": "KubeSchedulerConfiguration",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "profiles": [
            {"plugins": {"multiPoint": {"disabled": [{"name": "Coscheduling"}]}}},
        ],
    }
    [served] = configuration.read(body, "test").profiles.values()
    assert served.find(Coscheduling) is None


def test_a_file_may_hold_our_own_document_alone_or_beside_the_peers() -> None:
    """Alone it leaves the usual profiles; two of a kind are refused, whichever they are."""
    ours: dict[str, Any] = {
        "apiVersion": "scheduling.koordlet.io/v1alpha1",
        "kind": "ReschedulingConfiguration",
        "limiter": {"perMinute": 4},
    }
    peers: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "mine"}],
    }

    alone = configuration.read_all([ours], "f")
    assert alone.profiles.keys() == configuration.usual().profiles.keys()
    assert alone.disruption.per_minute == 4
    for bodies in ([ours, peers], [peers, ours]):
        read = configuration.read_all(bodies, "f")
        assert (list(read.profiles), read.disruption.per_minute) == (["mine"], 4)
    assert configuration.read_all([peers], "f").disruption.per_minute == 10
    for bodies in ([ours, ours], [peers, peers], []):
        with pytest.raises(errors.ConfigError, match="not one document of a kind"):
            configuration.read_all(bodies, "f")
