"""Which quotas are in force, and what their trees divide."""

from __future__ import annotations

import random
from typing import Any

import pytest

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ROOT, ElasticQuotaProfile
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.quotas import pools
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.settings import QuotaSettings
from tests.kit import clusters
from tests.kit.quotas import KEY, spec

_DECODER = Decoder({})


def _book(*several: elastic_quotas.ElasticQuota) -> QuotaBook:
    book = QuotaBook()
    for each in several:
        book.put_quota(each)
    book.settle()
    return book


def _parents(book: QuotaBook) -> dict[str, str]:
    nodes_ = book.nodes.values()
    return {
        node.name: node.parent.name
        for node in nodes_
        if node.parent and node.tree is not book.aside
    }


def _messages(book: QuotaBook) -> list[str]:
    return [notice.message for notice in book.take_notices()]


def _node(name: str, cpu: str, *, pool: str = "", cordoned: bool = False) -> Node:
    labels = {"pool": pool} if pool else {}
    return nodes.decode(
        clusters.node(name, cpu=cpu, labels=labels, spec={"unschedulable": cordoned})
    )


def test_quotas_come_in_any_order() -> None:
    """A child that is listed before its parent is below it, and nobody complains."""
    book = _book(
        spec("c", {}, {"cpu": 1}, parent="b"),
        spec("b", {}, {"cpu": 2}, parent="a", is_parent=True),
        spec("a", {}, {"cpu": 3}, is_parent=True),
    )
    assert _parents(book) == {"a": ROOT, "b": "a", "c": "b"}
    assert _messages(book) == []


def test_of_two_objects_of_one_name_the_older_counts() -> None:
    """The other one hears who has its name; when that goes, the other is in force."""
    old = spec("q", {}, {"cpu": 1}, namespace="z", created="2025-01-01T00:00:00Z")
    book = _book(spec("q", {}, {"cpu": 2}, namespace="a"), old)
    assert book.nodes["q"].spec.max == {"cpu": 1000}
    assert _messages(book) == ["quota q is ignored: z/q has its name"]
    book.drop_quota(old)
    book.settle()
    assert book.nodes["q"].spec.max == {"cpu": 2000}
    assert book.invalid == {}


def test_a_version_that_cannot_be_gives_way_to_the_one_before() -> None:
    """A negative maximum changes nothing; the object is named as invalid until it is repaired."""
    book = _book(spec("q", {}, {"cpu": 2}))
    book.put_quota(spec("q", {}, {"cpu": -1}))
    book.settle()
    assert book.nodes["q"].spec.max == {"cpu": 2000}
    words = (
        "q quota.Spec.Max's value < 0, in dimensions :[cpu]; write zero or more; the version before"
        " stays in force"
    )
    assert (_messages(book), book.invalid) == ([words], {"default/q": words})
    book.put_quota(spec("q", {}, {"cpu": 3}))
    book.settle()
    assert (book.nodes["q"].spec.max, book.invalid) == ({"cpu": 3000}, {})


def test_a_first_version_that_only_disagrees_with_others_is_in_force() -> None:
    """Minimums beyond the parent's are said and scaled; without any bound would be worse."""
    book = _book(
        spec("p", {"cpu": 1}, {"cpu": 9}, is_parent=True),
        spec("c", {"cpu": 2}, {"cpu": 9}, parent="p"),
    )
    assert _parents(book) == {"p": ROOT, "c": "p"}
    words = book.invalid["default/c"]
    assert words.startswith("checkMinQuotaSum all brothers' MinQuota")
    assert words.endswith("; it is in force all the same")


def test_a_version_that_gave_way_is_in_force_once_what_was_in_its_way_has_gone() -> None:
    """A brother that lowers its minimum, children that do, pods that end: nobody writes it anew."""
    book = _book(
        spec("p", {"cpu": 4}, {"cpu": 9}, is_parent=True),
        spec("b", {"cpu": 3}, {"cpu": 9}, parent="p"),
        spec("c", {"cpu": 1}, {"cpu": 9}, parent="p"),
    )
    book.put_quota(spec("c", {"cpu": 2}, {"cpu": 9}, parent="p"))
    book.put_quota(spec("p", {"cpu": 3}, {"cpu": 9}, is_parent=True))
    book.settle()
    assert [book.nodes[name].spec.min["cpu"] for name in "pc"] == [4000, 1000]
    book.put_quota(spec("b", {"cpu": 1}, {"cpu": 9}, parent="p"))
    book.settle()
    assert [book.nodes[name].spec.min["cpu"] for name in "pc"] == [3000, 2000]
    assert book.invalid == {}
    pod = _DECODER.decode(clusters.pod("x", on="n", labels={f"{KEY}name": "b"}), 0)
    book.put(pod)
    book.put_quota(spec("b", {"cpu": 1}, {"cpu": 9}, parent="p", is_parent=True))
    book.settle()
    assert book.invalid["default/b"].startswith("quota has bound pods")
    book.drop(pod.key)
    book.reconsider()
    book.settle()
    assert (book.nodes["b"].spec.is_parent, book.invalid) == (True, {})


def test_a_built_in_object_that_cannot_be_bounds_nothing() -> None:
    """The arguments hold, and its owner hears why."""
    book = _book(spec(elastic_quotas.DEFAULT, {}, {"cpu": -1}), spec("q", {}, {"cpu": 1}))
    assert book.nodes[elastic_quotas.DEFAULT].spec.max["cpu"] == (2**63 - 1) // 5
    [words] = _messages(book)
    assert words.endswith("write zero or more; the arguments hold")


def test_quotas_in_a_circle_are_below_the_root() -> None:
    """Each of three is said, none is lost; one link that goes heals the others."""
    several = {
        name: spec(name, {}, {"cpu": 1}, parent=parent, is_parent=True)
        for name, parent in (("a", "b"), ("b", "c"), ("c", "a"))
    }
    book = _book(*several.values())
    assert _parents(book) == dict.fromkeys("abc", ROOT)
    messages = sorted(_messages(book))
    assert [text.partition(";")[0] for text in messages] == [
        f"{name} has parentName {parent}, which is below {name}"
        for name, parent in (("a", "b"), ("b", "c"), ("c", "a"))
    ]
    assert all(text.endswith("it is in force below the root") for text in messages)
    book.put_quota(spec("c", {}, {"cpu": 1}, is_parent=True))
    book.settle()
    assert _parents(book) == {"c": ROOT, "b": "c", "a": "b"}


def test_children_of_a_deleted_parent_are_below_the_root_until_it_is_back() -> None:
    """Their pods stay counted, and where the quota comes again so do they."""
    parent = spec("p", {}, {"cpu": 9}, is_parent=True)
    book = _book(parent, spec("c", {}, {"cpu": 9}, parent="p"))
    book.drop_quota(parent)
    book.settle()
    assert _parents(book) == {"c": ROOT}
    words = "c has parentName p but no quota has that name; create it, or name another parent"
    assert _messages(book) == [f"{words}; it is in force below the root"]
    book.put_quota(parent)
    book.settle()
    assert (_parents(book), book.invalid) == ({"p": ROOT, "c": "p"}, {})


def _profile(**more: Any) -> ElasticQuotaProfile:
    body = {
        "metadata": {"name": "pool-a", "namespace": "d"},
        "spec": {
            "quotaName": "root-a",
            "nodeSelector": {"matchLabels": {"pool": "a"}},
            "resourceRatio": "0.9",
            **more,
        },
    }
    return elastic_quotas.elastic_quota_profile(body)


def test_a_profile_makes_a_tree_of_its_nodes() -> None:
    """Its total is theirs times the ratio, truncated; the default tree has the rest of all."""
    book = _book(spec("q", {}, {"cpu": 9}))
    for node in (_node("n0", "10"), _node("n1", "3", pool="a"), _node("n2", "4", pool="a")):
        book.put_node(None, node)
    book.put_profile(_profile())
    book.settle()
    root = book.nodes["root-a"]
    assert root.tree.id == str(pools.fnv("d/pool-a"))
    assert root.spec.min["cpu"] == root.tree.total["cpu"] == 6300
    assert book.trees[""].total["cpu"] == 17_000 - 6_300
    book.put_node(_node("n2", "4", pool="a"), _node("n2", "4", pool="a", cordoned=True))
    book.settle()
    assert book.nodes["root-a"].spec.unschedulable == {
        "cpu": 3600, "memory": 7730941132, "pods": 99,
    }  # fmt: skip
    book.drop_profile(_profile())
    book.settle()
    assert "root-a" not in book.nodes
    assert book.trees.keys() == {""}
    assert book.trees[""].total["cpu"] == 17_000


def test_a_tree_may_leave_the_default_total_alone() -> None:
    """With ignore-default-tree its nodes count twice, as the peer has it."""
    book = _book(spec("q", {}, {"cpu": 9}))
    book.put_node(None, _node("n1", "10", pool="a"))
    book.put_profile(_profile(quotaLabels={f"{KEY}ignore-default-tree": "true"}))
    book.settle()
    assert book.trees[""].total["cpu"] == 10_000
    assert book.nodes["root-a"].tree.total["cpu"] == 9_000


def test_a_child_follows_its_parent_into_another_tree() -> None:
    """Without an id of its own a quota is of its parent's tree, with everything below it."""
    child = spec("c", {}, {"cpu": 1}, parent="root-a", is_parent=True)
    book = _book(child, spec("l", {}, {"cpu": 1}, parent="c"))
    assert {book.nodes[name].tree.id for name in "cl"} == {""}
    book.put_profile(_profile())
    book.settle()
    tree = book.nodes["root-a"].tree
    assert [book.nodes[name].tree is tree for name in "cl"] == [True, True]
    assert _parents(book) == {"root-a": ROOT, "c": "root-a", "l": "c"}


def test_cordoned_nodes_count_unless_the_operator_says_otherwise() -> None:
    """The argument countUnschedulable decides whether their amounts are divided."""
    for counts, total in ((True, 10_000), (False, 0)):
        book = QuotaBook(QuotaSettings(counts_unschedulable=counts))
        book.put_quota(spec("q", {}, {"cpu": 9}))
        book.put_node(None, _node("n", "10", cordoned=True))
        book.settle()
        assert book.trees[""].total.get("cpu", 0) == total


def test_the_hash_of_a_name_is_that_of_the_peer() -> None:
    """FNV-1a with 64 bits: its published values of nothing and of ``a``."""
    assert pools.fnv("") == 0xCBF29CE484222325
    assert pools.fnv("a") == 0xAF63DC4C8601EC8C


def test_a_circle_that_closes_late_frees_those_above_it_too() -> None:
    """What was below a quota of the new circle is a member of it, and goes to the root as well."""
    several = [spec("a", {}, {"cpu": 1}, parent="b", is_parent=True)]
    book = _book(*several, spec("b", {}, {"cpu": 1}, parent="c", is_parent=True))
    assert _parents(book) == {"b": ROOT, "a": "b"}
    book.put_quota(spec("c", {}, {"cpu": 1}, parent="a", is_parent=True))
    book.settle()
    assert _parents(book) == dict.fromkeys("abc", ROOT)


def test_the_default_quota_is_bounded_by_its_object_while_that_is_there() -> None:
    """Without it the arguments count again, and pods in it stay counted."""
    own = spec("koordinator-default-quota", {}, {"cpu": 3})
    book = _book(spec("q", {}, {"cpu": 1}), own)
    node = book.nodes[elastic_quotas.DEFAULT]
    assert book.limit(node) == {"cpu": 3000}
    book.drop_quota(own)
    book.settle()
    assert book.limit(book.nodes[elastic_quotas.DEFAULT])["cpu"] == (2**63 - 1) // 5


def _shuffle(seed: int, steps: int) -> None:
    """Quotas come, move below each other, change their tree and go, a few at a time."""
    chance, book = random.Random(seed), QuotaBook()
    stored: dict[str, elastic_quotas.ElasticQuota] = {}
    names = [f"q{place}" for place in range(5)]
    for _ in range(steps):
        name = chance.choice(names)
        if name in stored and chance.random() < 0.15:
            book.drop_quota(stored.pop(name))
        else:
            most = {"cpu": 9} if chance.random() < 0.7 else {"cpu": 9, "memory": 1}
            stored[name] = spec(
                *(name, {"cpu": chance.choice((0, 1, 5))}, most),
                parent=chance.choice(("", *names)),
                is_parent=chance.random() < 0.8,
                labels={f"{KEY}tree-id": chance.choice("ab")} if chance.random() < 0.2 else None,
            )
            book.put_quota(stored[name])
        if chance.random() < 0.6:
            book.settle()
            assert book.nodes.keys() == stored.keys() | elastic_quotas.BUILT_IN - {ROOT}
            for node in book.nodes.values():
                assert node.path[0] is node.tree.root
                assert [node.path[-1], *node.path[-2:-1]] == [node, node.parent]


@pytest.mark.parametrize("seed", range(40))
def test_quotas_that_move_below_each_other_keep_their_trees_whole(seed: int) -> None:
    """Every quota of the store is in force, on a way that begins at the root of its tree."""
    _shuffle(seed, 40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_long_lives_of_moving_quotas_keep_their_trees_whole(seed: int) -> None:
    """The same, a thousand steps each."""
    _shuffle(seed, 1_000)
