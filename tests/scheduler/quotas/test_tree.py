"""Amounts over one tree of quotas."""

from __future__ import annotations

import random

import pytest

from koordlet.scheduler.quotas.tree import NOTHING, QuotaNode, QuotaTree, Usage
from tests.kit import quotas
from tests.oracle.quotas import ROOT, QuotaOracle

NAMES = ("cpu", "memory", "gpu")


def _usage(asked: dict[str, int], *, placed: bool = False, fixed: bool = False) -> Usage:
    return Usage(asked, asked if placed else {}, non_preemptible=fixed)


def test_a_limit_hides_what_is_beyond_it_from_those_above() -> None:
    """The parent counts min(request, max); names that max lacks are not limited."""
    tree = QuotaTree()
    parent = tree.put(quotas.spec("p", {}, {"cpu": 100}, is_parent=True))
    child = tree.put(quotas.spec("c", {}, {"cpu": 4}), parent)
    tree.count(child, NOTHING, _usage({"cpu": 9_000, "memory": 7}))
    assert child.request == {"cpu": 9_000, "memory": 7}
    assert parent.request == {"cpu": 4_000, "memory": 7}
    assert tree.root.child_request == {"cpu": 4_000, "memory": 7}


def test_who_does_not_lend_asks_for_its_minimum_at_least() -> None:
    """An idle quota that does not lend counts with its minimum, so its parent keeps that free."""
    tree = QuotaTree()
    child = tree.put(quotas.spec("c", {"cpu": 5}, {"cpu": 9}, lends=False))
    assert (child.request, tree.root.child_request) == ({"cpu": 5_000}, {"cpu": 5_000})
    tree.count(child, NOTHING, _usage({"cpu": 6_000}))
    assert tree.root.child_request == {"cpu": 6_000}


def test_a_change_of_a_pod_leaves_the_siblings_runtime_alone_where_a_limit_hides_it() -> None:
    """More demand beyond the maximum changes no claim: nothing is computed again."""
    tree = QuotaTree()
    tree.set_total({"cpu": 10_000})
    child = tree.put(quotas.spec("c", {}, {"cpu": 4}))
    tree.count(child, NOTHING, _usage({"cpu": 4_000}))
    assert tree.runtime(child) == {"cpu": 4_000}
    version = tree.root.version
    tree.count(child, NOTHING, _usage({"cpu": 3_000}))
    assert tree.root.version == version


def test_a_name_that_the_parent_does_not_bound_is_nothing_for_its_children() -> None:
    """Below a quota without memory a child with memory has none to use."""
    tree = QuotaTree()
    tree.set_total({"cpu": 10_000, "memory": 100})
    parent = tree.put(quotas.spec("p", {}, {"cpu": 8}, is_parent=True))
    child = tree.put(quotas.spec("c", {}, {"cpu": 8, "memory": 50}), parent)
    tree.count(child, NOTHING, _usage({"cpu": 2_000, "memory": 40}))
    assert tree.runtime(child) == {"cpu": 2_000, "memory": 0}


def test_a_quota_moves_with_all_its_amounts() -> None:
    """Below another parent, the old one counts nothing of it any more and the new one all."""
    tree = QuotaTree()
    old, new = (tree.put(quotas.spec(name, {}, {"cpu": 50}, is_parent=True)) for name in "on")
    child = tree.put(quotas.spec("c", {}, {"cpu": 50}, is_parent=True), old)
    leaf = tree.put(quotas.spec("l", {}, {"cpu": 50}), child)
    tree.count(leaf, NOTHING, _usage({"cpu": 5}, placed=True, fixed=True))
    tree.put(child.spec, new)
    assert (old.used, old.request, old.non_preemptible_used) == ({}, {}, {})
    assert (new.used, new.request, new.non_preemptible_used) == tuple([{"cpu": 5}] * 3)
    assert [node.name for node in leaf.path][1:] == ["n", "c", "l"]
    with pytest.raises(ValueError, match="cannot be below l"):
        tree.put(new.spec, leaf)


@pytest.mark.parametrize(
    ("lending", "steps"),
    [
        ((False, False, False), [(60, 20, 20), (60, 40, 20), (80, 60, 20)]),
        ((True, False, True), [(20, 20, 0), (40, 40, 0), (60, 60, 0)]),
        ((True, False, False), [(40, 20, 20), (60, 40, 20), (80, 60, 20)]),
    ],
)
def test_who_does_not_lend_keeps_its_minimum_while_its_sibling_grows(
    lending: tuple[bool, bool, bool], steps: list[tuple[int, int, int]]
) -> None:
    """The peer's trees: a parent of 60, two children of 20; the first asks for 0, 40, 60."""
    tree = QuotaTree()
    tree.set_total({"cpu": 100_000})
    parent, *children = (
        quotas.spec(name, {"cpu": least}, {"cpu": 96}, lends=lends)
        for name, least, lends in zip(("p", "c1", "c2"), (60, 20, 20), lending, strict=True)
    )
    above = tree.put(parent)
    below = [tree.put(child, above) for child in children]
    for asked, expected in zip((0, 40_000, 20_000), steps, strict=True):
        tree.count(below[0], NOTHING, _usage({"cpu": asked} if asked else {}))
        assert tuple(tree.runtime(node)["cpu"] // 1000 for node in (above, *below)) == expected


@pytest.mark.parametrize(
    ("scales", "wants", "expected"),
    [
        (True, (200, 200, 200), (200_000, 66_667, 66_667, 66_666)),
        (True, (200, 0, 200), (200_000, 100_000, 0, 100_000)),
        (False, (200, 200, 200), (300_000, 100_000, 100_000, 100_000)),
    ],
)
def test_minimums_of_300_in_a_cluster_of_200_are_scaled_where_that_is_on(
    *, scales: bool, wants: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    """Without scaling the minimums win over the total; with 600 CPUs everybody has its wish."""
    tree = QuotaTree(scales_minimum=scales)
    tree.set_total({"cpu": 200_000})
    parent = tree.put(quotas.spec("p", {"cpu": 300}, {"cpu": 1000}, is_parent=True))
    below = [tree.put(quotas.spec(name, {"cpu": 100}, {"cpu": 1000}), parent) for name in "abc"]
    for node, wanted in zip(below, wants, strict=True):
        tree.count(node, NOTHING, _usage({"cpu": wanted * 1000} if wanted else {}))
    assert tuple(tree.runtime(node)["cpu"] for node in (parent, *below)) == expected
    scaled = [tree.scaled_minimum(node)["cpu"] for node in (parent, *below)]
    assert scaled == ([200_000, *[66_666] * 3] if scales else [300_000, *[100_000] * 3])
    tree.set_total({"cpu": 600_000})
    assert [tree.runtime(node)["cpu"] for node in below] == [wanted * 1000 for wanted in wants]


def test_a_parent_with_pods_of_its_own_adds_them_to_what_its_children_may_ask() -> None:
    """Each child counts up to its maximum; what may not be preempted counts in full."""
    tree = QuotaTree()
    bounds = {"1": (40, 40), "2": (30, 10), "3": (20, 10), "4": (30, 10)}
    node: dict[str, QuotaNode] = {}
    for name, above in (("1", None), ("2", "1"), ("3", "1"), ("4", "2")):
        cpu, memory = bounds[name]
        most = {"cpu": f"{cpu}m", "memory": memory}
        node[name] = tree.put(quotas.spec(name, {}, most), node[above] if above else None)
    for name, fixed in (("2", 10), ("3", 5), ("4", 10)):
        both = {"cpu": fixed, "memory": fixed}
        rest = {"cpu": 20 - fixed, "memory": 20 - fixed}
        tree.count(node[name], NOTHING, _usage(both, fixed=True))
        tree.count(node[name], NOTHING, _usage(rest))
    asked = {name: tuple(each.request.values()) for name, each in node.items()}
    assert asked == {"1": (50, 20), "2": (40, 30), "3": (20, 20), "4": (20, 20)}
    fixed_ = {name: each.non_preemptible_request["cpu"] for name, each in node.items()}
    assert fixed_ == {"1": 25, "2": 20, "3": 5, "4": 10}


def test_with_guarantees_nobody_lends_what_its_minimum_leaves() -> None:
    """The peer's steps: pods of 5, 10 and 10 come to one of two siblings."""
    tree = QuotaTree(guarantees=True)
    parent = tree.put(quotas.spec("1", {"cpu": 20}, {"cpu": 40}, is_parent=True))
    child = tree.put(quotas.spec("2", {"cpu": 10}, {"cpu": 40}), parent)
    tree.put(quotas.spec("3", {"cpu": 5}, {"cpu": 40}), parent)
    seen = []
    for much in (5_000, 10_000, 10_000):
        tree.count(child, NOTHING, _usage({"cpu": much}, placed=True))
        own = child.request, child.allocated, child.guaranteed
        seen.append([each["cpu"] // 1000 for each in (*own, parent.allocated, parent.guaranteed)])
    assert seen == [[10, 5, 10, 15, 20], [15, 15, 15, 20, 20], [25, 25, 25, 30, 30]]


def test_what_is_guaranteed_follows_what_is_used() -> None:
    """max(allocated, min), up to the top; such a floor is kept where the total is too small."""
    tree = QuotaTree(guarantees=True)
    tree.set_total({"cpu": 4})
    parent = tree.put(quotas.spec("p", {}, {"cpu": "90m"}, is_parent=True))
    child = tree.put(quotas.spec("c", {"cpu": "2m"}, {"cpu": "90m"}), parent)
    assert (child.guaranteed, parent.guaranteed) == ({"cpu": 2}, {"cpu": 2})
    tree.count(child, NOTHING, _usage({"cpu": 7}, placed=True))
    assert (child.allocated, child.guaranteed) == ({"cpu": 7}, {"cpu": 7})
    assert (parent.allocated, parent.guaranteed) == ({"cpu": 7}, {"cpu": 7})
    assert tree.runtime(child) == {"cpu": 7}


def test_pods_of_a_priority_and_above_are_counted_together() -> None:
    """A bound of 9000 counts a pod of 9500, one of 5000 both; those below in the tree as well."""
    tree = QuotaTree()
    bounds = '{"9000": {"cpu": "20"}, "5000": {"cpu": "100"}}'
    notes = {"koordlet.io/max-by-priority": bounds}
    parent = tree.put(quotas.spec("p", {}, {"cpu": 200}, is_parent=True, annotations=notes))
    child = tree.put(quotas.spec("c", {}, {"cpu": 200}), parent)
    for priority in (9_500, 6_000, 10):
        tree.count(child, NOTHING, Usage({"cpu": 3}, {"cpu": 3}, priority=priority))
    assert parent.used_by_priority == [{"cpu": 3}, {"cpu": 6}]


def test_deep_trees_are_ordinary() -> None:
    """3 000 levels below each other: requests go up, and runtime comes down."""
    tree = QuotaTree()
    tree.set_total({"cpu": 10_000})
    node: QuotaNode | None = None
    for level in range(3_000):
        node = tree.put(quotas.spec(f"q{level}", {}, {"cpu": 10}, is_parent=True), node)
    assert node is not None
    tree.count(node, NOTHING, _usage({"cpu": 4_000}, placed=True))
    assert (tree.runtime(node), tree.root.used) == ({"cpu": 4_000}, {"cpu": 4_000})


def test_each_step_of_a_runtime_can_be_read() -> None:
    """What the parent has, the floor, then each round; the last number is the runtime."""
    tree = QuotaTree()
    tree.set_total({"cpu": 10_000})
    child = tree.put(quotas.spec("c", {"cpu": 1}, {"cpu": 8}))
    tree.count(child, NOTHING, _usage({"cpu": 4_000}))
    assert list(tree.explain(child)) == [
        ("cpu", "koordinator-root-quota has 10000 to divide"),
        ("cpu", "min 1000, request 4000: the floor, and shares what is left = 1000"),
        (
            "cpu",
            "9000 left, weight 8000 of 8000: +9000, 6000 beyond its request go back = 4000",
        ),
    ]


class _Twins:
    """A tree and the oracle through the same life."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._tree = QuotaTree()
        self._oracle = QuotaOracle({}, {})
        self._pods: list[tuple[str, Usage]] = []

    def step(self) -> None:
        """Change something."""
        chance = self._chance
        kind = chance.choice(("quota", "pod", "pod", "end", "move", "drop", "total"))
        names = sorted(self._oracle.quotas)
        if kind == "quota" and len(names) < 12:
            self._put(f"q{chance.randint(0, 15)}")
        elif kind == "pod" and names:
            asked = {k: v for k, v in quotas.amounts(chance, 40, NAMES).items() if v}
            usage = _usage(asked, placed=chance.random() < 0.5, fixed=chance.random() < 0.3)
            name = chance.choice(names)
            self._count(name, usage, 1)
            self._pods.append((name, usage))
        elif kind == "end" and self._pods:
            self._count(*self._pods.pop(chance.randrange(len(self._pods))), -1)
        elif kind == "move" and names:
            self._put(chance.choice(names))
        elif kind == "drop" and names:
            self._drop(chance.choice(names))
        elif kind == "total":
            self._oracle.total = quotas.amounts(chance, 200, NAMES)
            self._tree.set_total(self._oracle.total)

    def _count(self, name: str, usage: Usage, sign: int) -> None:
        change = (NOTHING, usage) if sign > 0 else (usage, NOTHING)
        self._tree.count(self._tree.nodes[name], *change)
        pods = self._oracle.quotas[name]["pods"]
        pair = (usage.amounts, usage.used)
        pods.append(pair) if sign > 0 else pods.remove(pair)

    def _put(self, name: str) -> None:
        chance = self._chance
        most = quotas.amounts(chance, 100, NAMES)
        least = {key: chance.randint(0, much) for key, much in most.items()}
        weight = {key: chance.randint(0, 5) for key in most}
        node, choices = self._tree.nodes.get(name), [ROOT, *sorted(self._oracle.quotas)]
        below = {each.name for each in node.below()} if node is not None else {name}
        parent = chance.choice([choice for choice in choices if choice not in below])
        lends = chance.random() < 0.7
        known = self._oracle.quotas.get(name, {"pods": []})
        bounds = [
            {key: f"{v}m" if key == "cpu" else v for key, v in listed.items()}
            for listed in (least, most, weight)
        ]
        spec = quotas.spec(name, *bounds[:2], weight=bounds[2], lends=lends)
        above = None if parent == ROOT else self._tree.nodes[parent]
        self._tree.put(spec, above)
        self._oracle.quotas[name] = {
            "parent": parent,
            "min": least,
            "max": most,
            "lends": lends,
            "weight": weight if any(weight.values()) else most,
            "pods": known["pods"],
        }

    def _drop(self, name: str) -> None:
        for pod in [pod for pod in self._pods if pod[0] == name]:
            self._count(*pod, -1)
            self._pods.remove(pod)
        self._tree.drop(name)
        del self._oracle.quotas[name]
        for quota in self._oracle.quotas.values():
            quota["parent"] = ROOT if quota["parent"] == name else quota["parent"]

    def compare(self) -> None:
        """Every amount and every runtime is the oracle's."""
        for name in self._oracle.quotas:
            node = self._tree.nodes[name]
            runtime = self._tree.runtime(node)
            for key in NAMES:
                ours = (
                    *(node.used.get(key, 0), node.request.get(key, 0)),
                    *(node.limit_request.get(key, 0), runtime.get(key, 0)),
                )
                oracle = self._oracle
                theirs = (
                    *(oracle.used(name, key), oracle.request(name, key)),
                    *(oracle.limited(name, key), oracle.runtime(name, key)),
                )
                assert ours == theirs, (name, key)
        fixed = sum(usage.used.get("cpu", 0) for _, usage in self._pods if usage.non_preemptible)
        assert self._tree.root.non_preemptible_used.get("cpu", 0) == fixed


def _live(seed: int, steps: int, every: int) -> None:
    twins = _Twins(seed)
    for step in range(steps):
        twins.step()
        if step % every == 0:
            twins.compare()
    twins.compare()


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_are_equal_to_the_naive_waterfilling_to_the_unit(seed: int) -> None:
    """Quotas come, change, move and go, pods too: every number is that of fractions."""
    _live(seed, 250, 5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_random_steps_are_equal_to_the_naive_waterfilling(seed: int) -> None:
    """The same for ten times 10 000 steps."""
    _live(1_000 + seed, 10_000, 50)
