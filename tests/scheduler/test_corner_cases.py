"""Corners of kube-scheduler's plugins: each row was derived by hand from its description.

What a reader would guess wrong: absent labels, numbers that are none, empty selectors, ports of all
addresses, what of a pod counts as its request, how scores are cut and rounded.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit import clusters
from tests.kit.clusters import affinity, node, pod, spread

Body = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
MI = 1 << 20


def expression(operator: str, *values: str) -> Body:
    """A pod that requires the label ``n`` so."""
    requirement = {"key": "n", "operator": operator, **({"values": list(values)} if values else {})}
    term = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}


@pytest.mark.parametrize(
    ("label", "operator", "values", "passes"),
    [
        ("5", "Gt", ["4"], True),
        ("5", "Gt", ["5"], False),
        ("5", "Lt", ["6"], True),
        ("-5", "Lt", ["0"], True),
        ("5.5", "Gt", ["4"], False),
        ("five", "Gt", ["4"], False),
        ("five", "Lt", ["4"], False),
        ("5", "Gt", ["4.5"], False),
        ("9223372036854775808", "Gt", ["4"], False),
        ("05", "Gt", ["4"], True),
        ("", "Exists", [], True),
        (None, "Gt", ["4"], False),
        (None, "Exists", [], False),
        (None, "NotIn", ["a"], True),
        (None, "DoesNotExist", [], True),
        (None, "In", [""], False),
        ("", "In", [""], True),
    ],
)
def test_node_affinity(
    label: str | None, operator: str, values: list[str], *, passes: bool
) -> None:
    """Numbers are 64-bit integers or nothing; an absent key satisfies the negative operators."""
    labelled = clusters.stored(node("a", labels={} if label is None else {"n": label}))
    taken = clusters.stored(pod("p", affinity=expression(operator, *values)))
    places = clusters.places(labelled, taken)

    assert places == ({"p": "a"} if passes else {})


def test_one_unreadable_term_leaves_the_others() -> None:
    """A term with an unreadable number matches nothing, and the next term still may."""
    wanted = expression("Gt", "x")
    terms = wanted["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"].append({"matchExpressions": [{"key": "n", "operator": "Exists"}]})

    assert clusters.places(node("a", labels={"n": "1"}), pod("p", affinity=wanted)) == {"p": "a"}


@pytest.mark.parametrize(
    ("taint", "toleration", "borne"),
    [
        ("5", {"operator": "Gt", "value": "4"}, True),
        ("5", {"operator": "Gt", "value": "5"}, False),
        ("5", {"operator": "Lt", "value": "6"}, True),
        ("-5", {"operator": "Lt", "value": "-4"}, True),
        ("05", {"operator": "Gt", "value": "4"}, False),
        ("+5", {"operator": "Gt", "value": "4"}, False),
        ("5.0", {"operator": "Gt", "value": "4"}, False),
        ("", {"operator": "Gt", "value": "4"}, False),
        ("9223372036854775808", {"operator": "Gt", "value": "4"}, False),
        ("9223372036854775807", {"operator": "Gt", "value": "4"}, True),
        ("", {"operator": "Equal"}, True),
        ("", {"operator": "Exists"}, True),
    ],
)
def test_taints(taint: str, toleration: Body, *, borne: bool) -> None:
    """Comparisons need canonical integers of 64 bits on both sides."""
    tainted = {"taints": [{"key": "k", "value": taint, "effect": "NoExecute"}]}
    taken = clusters.stored(pod("p", tolerations=[{"key": "k", **toleration}]))
    places = clusters.places(clusters.stored(node("a", spec=tainted)), taken)

    assert places == ({"p": "a"} if borne else {})


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        ({}, {}, False),
        ({"hostIP": "0.0.0.0"}, {"hostIP": "10.0.0.1"}, False),  # noqa: S104 -- nobody listens
        ({"hostIP": "10.0.0.1"}, {}, False),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.1"}, False),
        ({"protocol": "UDP"}, {}, True),
        ({"protocol": "UDP"}, {"protocol": "UDP"}, False),
        ({"hostPort": 0}, {"hostPort": 0}, True),
    ],
)
def test_ports(taken: Body, wanted: Body, *, free: bool) -> None:
    """No address and 0.0.0.0 are every address; the protocol is TCP unless said."""

    def using(port: Body) -> Body:
        return {"ports": [{"containerPort": 80, "hostPort": 80, **port}]}

    there = pod("old", on="a", container=using(taken))
    places = clusters.places(node("a"), there, pod("p", container=using(wanted)))

    assert places == ({"p": "a"} if free else {})


def test_ports_of_sidecars_count_and_of_init_containers_do_not() -> None:
    """A sidecar runs beside; an init container has ended by then."""
    ports = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    for more, expected in (({"restartPolicy": "Always"}, {}), ({}, {"p": "a"})):
        there = pod("old", on="a", initContainers=[{"name": "i", **ports, **more}])
        assert clusters.places(node("a"), there, pod("p", container=ports)) == expected


def zones(*names: str) -> list[Body]:
    """A node in each zone; an empty name is none."""
    return [
        node(f"n{i}", labels={ZONE: name} if name else {}) for i, name in enumerate(names, start=1)
    ]


def test_too_few_domains() -> None:
    """With fewer domains than minDomains the smallest count is taken for none."""
    there = [pod("x", on="n1", labels={"app": "web"}), pod("y", on="n2", labels={"app": "web"})]
    labels = {"app": "web"}
    for least, placed in ((2, True), (3, False)):
        wanted = pod("p", labels=labels, topologySpreadConstraints=[spread(ZONE, minDomains=least)])
        assert bool(clusters.places(*zones("a", "b"), *there, wanted)) is placed


def test_a_label_key_that_the_pod_lacks() -> None:
    """``matchLabelKeys`` that the pod has no label for are as if they were not there."""
    there = pod("x", on="n1", labels={"app": "web"})
    constraint = spread(ZONE, matchLabelKeys=["missing"])
    wanted = pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint])

    assert clusters.places(*zones("a", "b"), there, wanted) == {"p": "n2"}


def test_a_label_key_narrows() -> None:
    """With the label, only pods of the same value count."""
    there = pod("x", on="n1", labels={"app": "web", "rev": "1"})
    constraint = spread(ZONE, matchLabelKeys=["rev"])
    wanted = pod("p", labels={"app": "web", "rev": "2"}, topologySpreadConstraints=[constraint])
    placements = clusters.tried(*zones("a", "b"), there, wanted)["placements"]

    assert set(placements[0]["scores"]) == {"n1", "n2"}


def test_nodes_without_the_key() -> None:
    """They are refused in words of their own, and no preemption helps."""
    wanted = pod("p", labels={"app": "web"}, topologySpreadConstraints=[spread(ZONE)])

    assert clusters.message("p", *zones(""), wanted) == (
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints"
        " (missing required label)."
    )


def test_an_empty_selector_of_spreading_counts_nobody() -> None:
    """``{}`` means the pod itself and none of those that are there."""
    there = [pod(f"x{i}", on="n1", labels={"app": "web"}) for i in range(3)]
    constraint = {**spread(ZONE), "labelSelector": {}}
    wanted = pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint])
    placements = clusters.tried(*zones("a", "b"), *there, wanted)["placements"]

    assert set(placements[0]["scores"]) == {"n1", "n2"}


@pytest.mark.parametrize(
    ("where", "near"),
    [
        ({}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["third"]}, False),
        ({"namespaces": ["third"], "namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
    ],
)
def test_namespaces_of_a_term(where: Body, *, near: bool) -> None:
    """Neither: the pod's own; an empty selector: every one; both: either of them."""
    spaces = [
        {"kind": "Namespace", "metadata": {"name": "d"}},
        {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "x"}}},
    ]
    there = pod("x", on="n1", namespace="other", labels={"app": "web"})
    wanted = pod("p", affinity=affinity("podAffinity", ZONE, **where))
    places = clusters.places(*spaces, *zones("a", "b"), there, wanted)

    assert places == ({"p": "n1"} if near else {})


def test_a_term_without_a_selector_means_nobody() -> None:
    """No selector: no pod is meant, so affinity cannot be satisfied; an empty one means all."""
    there = pod("x", on="n1", labels={"app": "web"})
    for selector, expected in ((None, {}), ({}, {"p": "n1"})):
        term = affinity("podAffinity", ZONE)
        for rule in term["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]:
            rule.pop("labelSelector")
            if selector is not None:
                rule["labelSelector"] = selector
        assert clusters.places(*zones("a", "b"), there, pod("p", affinity=term)) == expected


def config(plugin: str, args: Body) -> Body:
    """Only this plugin scores."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": plugin}]}},
                "pluginConfig": [{"name": plugin, "args": args}] if args else [],
            }
        ],
    }


@pytest.mark.parametrize(
    ("shape", "cpu", "memory", "score"),
    [
        # 25 % and 25 % on a straight line from 0 to 10: 25.
        ([(0, 0), (100, 10)], "1", "2Gi", 25),
        # Falling: 75 and 50 make 62.5, rounded away from zero.
        ([(0, 10), (100, 0)], "1", "4Gi", 63),
        # A score of nothing takes no part: memory alone counts.
        ([(0, 0), (50, 0), (100, 10)], "2", "6Gi", 50),
        # Beyond the last point it stays what it is there.
        ([(0, 0), (20, 10)], "3", "6Gi", 100),
        # Below the first point too.
        ([(40, 3), (100, 10)], "1", "2Gi", 30),
        # 33.3 % is cut to 33; what is asked for as nothing scores nothing, and takes no part.
        ([(0, 0), (100, 10)], "1333m", "0", 33),
    ],
)
def test_requested_to_capacity(
    shape: list[tuple[int, int]], cpu: str, memory: str, score: int
) -> None:
    """The line between points in integers; the mean of those with a score, rounded half up."""
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        "requestedToCapacityRatio": {"shape": [{"utilization": u, "score": s} for u, s in shape]},
    }
    plugins = config("NodeResourcesFit", {"scoringStrategy": strategy})
    nodes = [node("a"), node("b")]
    wanted = pod("p", cpu=cpu, memory=memory)

    assert clusters.scores("p", *nodes, wanted, config=plugins)["a"] == score


@pytest.mark.parametrize(
    ("used", "asked", "score"),
    [
        # Nothing there: |.25 - .25| before and after make no difference: 50 + 25.
        ({}, {"cpu": "1", "memory": "2Gi"}, 75),
        # Empty is balanced (100); one CPU alone makes 100 - 12.5, cut to 87: 50 + 37 // 2.
        ({}, {"cpu": "1"}, 68),
        # One CPU is there (87); 2 GiB make it even (100): 50 + 63 // 2.
        ({"cpu": "1"}, {"memory": "2Gi"}, 81),
        # Full is full: fractions end at 1.
        ({"cpu": "4"}, {"memory": "8Gi"}, 100),
    ],
)
def test_balance(used: Body, asked: Body, score: int) -> None:
    """How much the pod improves it, from the real requests."""
    plugins = config("NodeResourcesBalancedAllocation", {})
    there = [pod(f"x{name}", on=name, **used) for name in ("a", "b")] if used else []
    scores = clusters.scores("p", node("a"), node("b"), *there, pod("p", **asked), config=plugins)

    assert scores["a"] == score


def test_balance_has_nothing_to_say_about_pods_that_ask_for_nothing() -> None:
    """Best effort: the score is left out."""
    plugins = config("NodeResourcesBalancedAllocation", {})

    assert clusters.scores("p", node("a"), node("b"), pod("p"), config=plugins)["a"] == 0


@pytest.mark.parametrize(
    ("size", "everywhere", "score"),
    [
        # Below 23 MiB after spreading: nothing.
        (46 * MI, False, 0),
        (46 * MI + 2, False, 0),
        # 523 MiB of 1 000: (523 - 23) / (1000 - 23).
        (523 * MI, True, 51),
        # Beyond the most.
        (5000 * MI, True, 100),
    ],
)
def test_images(size: int, score: int, *, everywhere: bool) -> None:
    """Spread over the nodes that have it, cut at both ends."""
    plugins = config("ImageLocality", {})
    images = [{"names": ["app:1"], "sizeBytes": size}]
    other = node("b", images=images) if everywhere else node("b")
    scores = clusters.scores("p", node("a", images=images), other, pod("p"), config=plugins)

    assert scores["a"] == score


def test_an_image_without_a_tag_is_the_latest() -> None:
    """On the node it has the tag; and each init container makes the most larger."""
    plugins = config("ImageLocality", {})
    images = [{"names": ["app:latest"], "sizeBytes": 1000 * MI}]
    init = [{"name": "i", "image": "none:1"}]
    wanted = pod("p", container={"image": "app"}, initContainers=init)
    both = node("a", images=images), node("b", images=images)
    scores = clusters.scores("p", *both, wanted, config=plugins)

    assert scores["a"] == 100 * (1000 - 23) // (2000 - 23)


def container(cpu: str, **more: Any) -> Body:
    """One that asks for so much CPU."""
    return {"name": more.pop("name", "i"), "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        # Main 1, sidecar 1: 2; an init container before the sidecar has only itself.
        ([container("3"), container("1", restartPolicy="Always", name="j")], 3),
        # After it, it runs beside the sidecar: 3 + 1.
        ([container("1", restartPolicy="Always"), container("3", name="j")], 4),
        # Two sidecars and the main one: 3; the last init beside both: 1 + 1 + 2.
        (
            [
                container("1", restartPolicy="Always"),
                container("1", restartPolicy="Always", name="j"),
                container("2", name="k"),
            ],
            4,
        ),
    ],
)
def test_sidecars(spec: list[Body], cpu: int) -> None:
    """The most that runs at the same time; overhead comes on top of it."""
    wanted = pod("p", cpu="1", initContainers=spec)
    assert clusters.places(node("a", cpu=str(cpu)), wanted) == {"p": "a"}
    assert clusters.places(node("a", cpu=str(cpu - 1)), wanted) == {}
    above = pod("p", cpu="1", initContainers=spec, overhead={"cpu": "1m"})
    assert clusters.places(node("a", cpu=str(cpu)), above) == {}


def test_requests_of_the_whole_pod_replace_those_of_its_containers() -> None:
    """CPU and memory; overhead is added, other resources stay as the containers ask."""
    own = {"requests": {"cpu": "1"}}
    wanted = pod("p", cpu="3", resources=own, overhead={"cpu": "500m"}, requests={"x.io/y": "1"})
    room = {"x.io/y": "1"}

    assert clusters.places(node("a", cpu="1500m", allocatable=room), wanted) == {"p": "a"}
    assert clusters.places(node("a", cpu="1499m", allocatable=room), wanted) == {}
    assert clusters.places(node("a", cpu="2"), wanted) == {}


@pytest.mark.parametrize(
    ("status", "left"),
    [
        # As the spec says.
        ({}, "2"),
        # Less was asked for, and is not yet given back: the most of the three counts.
        ({"resources": {"requests": {"cpu": "3"}}}, "1"),
        ({"allocatedResources": {"cpu": "3"}}, "1"),
        ({"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}, "2"),
    ],
)
def test_a_resize_on_its_way(status: Body, left: str) -> None:
    """Who is there counts with the most of what it has, was allowed, and asks for."""
    told = {"containerStatuses": [{"name": "c", **status}]}
    there = pod("x", on="a", cpu="2", status=told)

    assert clusters.places(node("a"), there, pod("p", cpu=left)) == {"p": "a"}
    assert clusters.places(node("a"), there, pod("p", cpu=f"{left}001m")) == {}


def test_a_resize_that_cannot_be() -> None:
    """What is infeasible is not counted: only what it has and was allowed."""
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    has = {"name": "c", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
    there = pod("x", on="a", cpu="4", status={"conditions": [pending], "containerStatuses": [has]})

    assert clusters.places(node("a"), there, pod("p", cpu="3")) == {"p": "a"}
