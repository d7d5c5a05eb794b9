"""Whose pods are in which quota, and what they count for."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from koordlet.kubeapi.elastic_quotas import DEFAULT
from koordlet.scheduler.loop.outcomes import Bind
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas import runtime
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.runtime import Claim
from koordlet.scheduler.quotas.settings import QuotaSettings
from koordlet.scheduler.quotas.tree import QuotaNode
from koordlet.scheduler.quotas.validation import ValidationGates
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import KEY, quota, spec

_DECODER = Decoder({})


def _pod(name: str, label: str = "", *, on: str = "", cpu: str = "1", **more: Any) -> Pod:
    labels = {f"{KEY}name": label} if label else {}
    return _DECODER.decode(clusters.pod(name, on=on, cpu=cpu, labels=labels, **more), 0)


def _book(*names: str, **gates: bool) -> QuotaBook:
    default = gates.pop("has_default_quota", True)
    book = QuotaBook(QuotaSettings(has_default_quota=default, gates=ValidationGates(**gates)))
    for name in names:
        book.put_quota(spec(name, {}, {"cpu": 100}))
    book.settle()
    return book


def _name(book: QuotaBook, pod: Pod) -> str:
    node = book.of(pod.pod_class)
    return node.name if node is not None else ""


def test_the_label_of_a_pod_comes_before_everything_else() -> None:
    """Then its Namespace's, then the quota of its name; a label of nobody means the default."""
    book = _book("team", "other")
    book.put_quota(spec("d", {}, {"cpu": 1}, namespace="d"))
    book.settle()
    assert _name(book, _pod("p")) == "d"
    book.name_namespace("d", "other")
    assert _name(book, _pod("p")) == "other"
    assert _name(book, _pod("p", "team")) == "team"
    assert _name(book, _pod("p", "nobody")) == DEFAULT
    book.name_namespace("d", "")
    assert _name(book, _pod("p")) == "d"


def test_a_quota_that_comes_after_the_namespace_that_names_it_has_its_pods() -> None:
    """As at a start: pods and Namespaces are listed before quotas. It gives them back, too."""
    book = _book("first")
    book.name_namespace("d", "late")
    book.put(_pod("p", on="n"))
    assert _name(book, _pod("p")) == DEFAULT
    book.put_quota(spec("late", {}, {"cpu": 1}))
    book.settle()
    assert (_name(book, _pod("p")), book.pods("late")) == ("late", ("p",))
    owner = book.owner("late")
    assert owner is not None
    book.drop_quota(owner)
    book.settle()
    assert (_name(book, _pod("p")), book.pods(DEFAULT)) == (DEFAULT, ("p",))


def test_without_a_default_quota_labels_alone_count() -> None:
    """The gate DisableDefaultQuota: who names no quota that exists is in none."""
    book = _book("team", has_default_quota=False)
    book.put_quota(spec("d", {}, {"cpu": 1}, namespace="d"))
    book.settle()
    assert (_name(book, _pod("p")), _name(book, _pod("p", "nobody"))) == ("", "")
    book.put(_pod("p", on="n"))
    assert (_name(book, _pod("p", "team")), book.nodes["d"].used) == ("team", {})


def test_a_pod_that_changes_its_label_moves_with_all_it_uses() -> None:
    """The quota before counts nothing of it, nor after it has gone."""
    book = _book("a", "b")
    book.put(_pod("p", "a", on="n"))
    book.put(_pod("p", "b", on="n"))
    assert (book.nodes["a"].used, book.nodes["b"].used) == ({}, {"cpu": 1000})
    book.drop("d/p")
    assert (book.nodes["b"].used, book.nodes["b"].child_request, list(book.pods("b"))) == (
        {},
        {},
        [],
    )


def test_what_a_pod_draws_from_a_reservation_counts_once() -> None:
    """The hold is used by its quota; its pods use what is beyond it, the first ones nothing."""
    book = _book("a", "b")
    hold = _pod("r", "a", on="n", cpu="4")
    hold.reserve_pod_of = "uid-r"
    drawing = [_pod(f"p{place}", "b", on="n", cpu="3") for place in range(2)]
    for pod in drawing:
        pod.draws_on = "uid-r"
    book.put(drawing[0])
    assert book.nodes["b"].used == {"cpu": 3000}
    book.put(hold)
    assert (book.nodes["a"].used, book.nodes["b"].used) == ({"cpu": 4000}, {})
    book.put(drawing[1])
    assert book.nodes["b"].used == {"cpu": 2000}
    book.drop(drawing[0].key)
    assert book.nodes["b"].used == {}
    book.drop(hold.key)
    assert (book.nodes["a"].used, book.nodes["b"].used) == ({}, {"cpu": 3000})


@pytest.mark.parametrize("ignores", [True, False])
def test_a_pod_that_ends_counts_until_it_is_gone_unless_the_gate_says_otherwise(
    *, ignores: bool
) -> None:
    """The peer's gate ElasticQuotaImmediateIgnoreTerminatingPod."""
    book = QuotaBook(QuotaSettings(ignores_terminating=ignores))
    book.put_quota(spec("q", {}, {"cpu": 100}))
    book.settle()
    pod = _pod("a", "q", on="n")
    book.put(pod)
    assert book.nodes["q"].used == {"cpu": 1000}
    pod.terminating = True
    book.put(pod)
    left = {} if ignores else {"cpu": 1000}
    assert (book.nodes["q"].used, book.nodes["q"].request) == (left, left)
    book.drop(pod.key)
    assert book.nodes["q"].request == {}


def test_a_pod_counts_for_nothing_a_grace_period_after_it_should_have_been_gone() -> None:
    """Deleted at 0 with 30 seconds: it counts at 60 and not after, nor when it comes anew."""
    book = _book("q")
    ends = {"deletionTimestamp": "1970-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
    pod = _pod("a", "q", on="n", meta=ends)
    book.put(pod)
    seen = []
    for wall in (10.0, 60.0, 60.1):
        book.take_relief()
        book.pass_overdue(wall)
        seen.append((book.nodes["q"].used.get("cpu", 0), book.take_relief()))
    assert seen == [(1000, False), (1000, False), (0, True)]
    book.put(_pod("a", "q", on="n", meta=ends))
    assert (book.nodes["q"].used, book.nodes["q"].request) == ({}, {})
    book.drop("d/a")
    book.put(_pod("a", "q", on="n"))
    assert book.nodes["q"].used == {"cpu": 1000}


def test_a_pod_that_gives_its_node_back_still_asks() -> None:
    """Used falls, the request stays."""
    book = _book("a")
    pod = _pod("p", "a", on="n")
    book.put(pod)
    book.release(pod)
    node = book.nodes["a"]
    assert (node.used, node.child_request) == ({}, {"cpu": 1000})


def test_binding_a_pod_changes_no_claim() -> None:
    """Only used moves: the runtime of its siblings is not computed again."""
    book = _book("a", "b")
    book.put(_pod("p", "a"))
    version = book.trees[""].root.version
    book.put(_pod("p", "a", on="n"))
    assert (book.trees[""].root.version, book.nodes["a"].used) == (version, {"cpu": 1000})


class _Life:
    """A cluster whose objects come and go under a scheduler that is restarted now and then."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._nodes: dict[str, dict[str, Any]] = {}
        self._quotas: dict[str, dict[str, Any]] = {}
        self._pods: dict[str, dict[str, Any]] = {}
        self._scene = QuotaScene()
        self._serial = 0

    def step(self) -> None:
        """Something happens."""
        kinds = "create create create decide decide end end relabel fail quota unquota node unnode"
        getattr(self, f"_{self._chance.choice([*kinds.split(), 'restart'])}")()

    def _put(self, body: dict[str, Any]) -> None:
        kept = {"Pod": self._pods, "Node": self._nodes, "ElasticQuota": self._quotas}[body["kind"]]
        name = body["metadata"]["name"]
        if body["kind"] == "Node":
            old = kept.get(name)
            before = nodes.decode(old) if old else None
            self._scene.core.node(before, nodes.decode(body), self._scene.now)
        else:
            self._scene.put(body)
        kept[name] = body

    def _create(self) -> None:
        if len(self._pods) > 60:
            return
        self._serial += 1
        label = self._chance.choice(("", "q0", "q1", "q2", "q3", "q4"))
        labels = {f"{KEY}name": label} if label else {}
        if self._chance.random() < 0.2:
            labels[f"{KEY}preemptible"] = "false"
        name, cpu = f"p{self._serial}", f"{self._chance.randint(1, 3000)}m"
        priority = self._chance.choice((0, 0, 5, 9))
        self._put(clusters.pod(name, cpu=cpu, labels=labels, priority=priority))

    def _decide(self) -> None:
        scene = self._scene
        scene.now += self._chance.choice((1.0, 20.0, 400.0))
        for _ in range(3):
            outcome = scene.core.step(scene.now)
            if outcome is None:
                return
            if isinstance(outcome, Bind):
                body = copy.deepcopy(self._pods[outcome.pod.name])
                body["spec"]["nodeName"] = outcome.node
                scene.core.bound(outcome.pod, scene.now)
                self._put(body)
                continue
            for victim in getattr(outcome, "victims", ()):
                self._end(victim.name)

    def _end(self, name: str = "") -> None:
        if self._pods:
            name = name or self._chance.choice(sorted(self._pods))
            del self._pods[name]
            self._scene.drop(name)

    def _relabel(self) -> None:
        if self._pods:
            body = copy.deepcopy(self._pods[self._chance.choice(sorted(self._pods))])
            body["metadata"]["labels"][f"{KEY}name"] = self._chance.choice(("q0", "q1", "q5"))
            self._put(body)

    def _fail(self) -> None:
        scene = self._scene
        scene.now += 400
        outcome = scene.core.step(scene.now)
        if isinstance(outcome, Bind):
            assert scene.core.unbound(outcome.pod, scene.now)
        for victim in getattr(outcome, "victims", ()):
            self._end(victim.name)

    def _quota(self) -> None:
        chance = self._chance
        name = f"q{chance.randint(0, 5)}"
        most = {"cpu": chance.randint(0, 20)} if chance.random() < 0.9 else {}
        least = {key: chance.randint(0, much) for key, much in most.items()}
        parent = chance.choice(("", "", *sorted(self._quotas)))
        lends = chance.random() < 0.7
        self._put(quota(name, least, most, parent=parent, lends=lends, is_parent=True))

    def _unquota(self) -> None:
        if self._quotas:
            name = self._chance.choice(sorted(self._quotas))
            del self._quotas[name]
            self._scene.drop_quota(name)

    def _node(self) -> None:
        name = f"n{self._chance.randint(0, 4)}"
        self._put(clusters.node(name, cpu=str(self._chance.randint(1, 12))))

    def _unnode(self) -> None:
        if self._nodes:
            name = self._chance.choice(sorted(self._nodes))
            gone = nodes.decode(self._nodes.pop(name))
            self._scene.core.node(gone, None, self._scene.now)

    def _restart(self) -> None:
        if self._chance.random() < 0.2:
            self._scene = self.fresh()

    def fresh(self) -> QuotaScene:
        """A scheduler that has seen what is there now, and nothing before."""
        scene = QuotaScene(*self._nodes.values(), *self._quotas.values())
        scene.put(*self._pods.values())
        scene.now = self._scene.now
        return scene

    def check(self) -> None:
        """What is used is what pods on nodes ask for; shares keep within the total."""
        scene = self._scene
        book = scene.book
        if not scene.core.quotas.active:
            return
        placed = sum(pod.pod_class.requests.real["cpu"] for pod in scene.core.pod_cache)
        roots = [*(tree.root for tree in book.trees.values()), book.aside.root]
        assert sum(root.used.get("cpu", 0) for root in roots) == placed
        leaves = sum(node.self_used.get("cpu", 0) for node in book.nodes.values())
        assert leaves == placed
        for node in book.nodes.values():
            self._check_children(book, node)
        self._check_children(book, book.trees[""].root)

    @staticmethod
    def _check_children(book: QuotaBook, node: QuotaNode) -> None:
        children = [each for each in node.children.values() if "cpu" in each.spec.max]
        total = book.trees[""].root.runtime if node.parent is None else book.limit(node)
        limits = [book.limit(each).get("cpu", 0) for each in children]
        assert sum(limits) <= total.get("cpu", 0)
        claims = [
            Claim(each.name, each.spec.min.get("cpu", 0), each.limit_request.get("cpu", 0), 0)
            for each in children
        ]
        floors = runtime.scaled_minimums(total.get("cpu", 0), claims)
        for limit, floor, claim in zip(limits, floors, claims, strict=True):
            assert limit >= min(floor, claim.request)

    def compare(self) -> None:
        """A scheduler that starts now counts the same, but for what is on its way to the store."""
        if self._scene.core.pod_cache.assumed:
            return
        ours, theirs = self._scene.book, self.fresh().book
        assert _own(ours) == _own(theirs)
        # A version that gave way to the one before is in force after a start.
        if not (ours.invalid or theirs.invalid):
            assert _whole(ours) == _whole(theirs)


def _own(book: QuotaBook) -> dict[str, Any]:
    return {name: (node.self_used, node.self_request) for name, node in book.nodes.items()}


def _whole(book: QuotaBook) -> dict[str, Any]:
    return {
        name: (node.used, node.non_preemptible_used, node.limit_request, node.path[-2].name)
        for name, node in book.nodes.items()
    }


def _live(seed: int, steps: int) -> None:
    life = _Life(seed)
    for step in range(steps):
        life.step()
        life.check()
        if step % 50 == 0:
            life.compare()


@pytest.mark.parametrize("seed", range(4))
def test_used_is_what_pods_on_nodes_ask_for_at_every_moment(seed: int) -> None:
    """Create, bind, fail, end, relabel, quotas and nodes that come and go, restarts: 3 000."""
    _live(seed, 750)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_used_is_what_pods_on_nodes_ask_for_in_a_long_life(seed: int) -> None:
    """The same for 100 000 steps."""
    _live(100 + seed, 10_000)


def test_a_namespace_that_a_quota_lists_no_more_is_free_for_others() -> None:
    """The first one gave it up: another that asks for it hears of no owner."""
    book = _book()
    for listed in ("x", "y"):
        book.put_quota(spec("a", {}, {"cpu": 4}, annotations={f"{KEY}namespaces": f'["{listed}"]'}))
        book.settle()
    later = {"created": "2026-02-01T00:00:00Z", "annotations": {f"{KEY}namespaces": '["x", "y"]'}}
    assert book.listed_elsewhere(spec("b", {}, {"cpu": 4}, **later)) == {"y": "a"}
