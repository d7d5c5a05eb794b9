"""Whether a quota can be in force, with the peer's messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from koordlet.kubeapi.elastic_quotas import ElasticQuota, elastic_quota
from koordlet.model import resources
from koordlet.scheduler.quotas import validation
from koordlet.scheduler.quotas.validation import Validation, ValidationGates
from tests.kit import quotas
from tests.kit.quotas import KEY, spec


class _Quotas:
    """Quotas that are in force, written down."""

    def __init__(
        self,
        *several: ElasticQuota,
        pods: Mapping[str, tuple[str, ...]] | None = None,
        guaranteed: Mapping[str, dict[str, int]] | None = None,
    ) -> None:
        self._specs = {each.name: each for each in several}
        self._pods, self._guaranteed = pods or {}, guaranteed or {}

    def spec(self, name: str) -> ElasticQuota | None:
        return self._specs.get(name)

    def parent(self, name: str) -> str:
        return self._specs[name].parent if name in self._specs else ""

    def children(self, name: str) -> Iterable[ElasticQuota]:
        return [each for each in self._specs.values() if each.parent == name]

    def minimums(self, name: str) -> Mapping[str, int]:
        return resources.total(child.min for child in self.children(name))

    def pods(self, name: str) -> tuple[str, ...]:
        return self._pods.get(name, ())

    def guaranteed(self, name: str) -> Mapping[str, int]:
        return self._guaranteed.get(name, {})

    def self_used(self, name: str) -> Mapping[str, int]:
        return self._guaranteed.get(f"pods of {name}", {})


PARENT = spec("P", {"cpu": 10}, {"cpu": 20}, is_parent=True)
CPU = {"cpu": 1}


def _message(new: ElasticQuota, *others: ElasticQuota, old: ElasticQuota | None = None) -> str:
    objection = Validation(_Quotas(*others)).objection(new, old)
    return objection.message if objection is not None else ""


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (spec("Q", {}, {"cpu": -1}), "Q quota.Spec.Max's value < 0, in dimensions :[cpu]"),
        (
            spec("Q", {"cpu": -1, "memory": -2}, {"cpu": 1, "memory": 1}),
            "Q quota.Spec.Min's value < 0, in dimensions :[cpu memory]",
        ),
        (
            spec("Q", {}, CPU, weight={"cpu": "-1"}),
            f"Q quota.Annotation[{KEY}shared-weight]'s value < 0, in dimension :[cpu]",
        ),
        (
            spec("Q", {"memory": 1}, CPU),
            "resourceKey memory of quota Q is included in min, which is not included in max",
        ),
        (spec("Q", {"cpu": 12}, {"cpu": 10}), "resourceKey cpu of quota Q min 12 > max 10"),
    ],
)
def test_amounts_that_make_no_quota_are_fatal(new: ElasticQuota, message: str) -> None:
    """Negative amounts and minimums without or above a maximum are never in force."""
    objection = Validation(_Quotas()).objection(new)
    assert objection is not None
    assert (objection.message, objection.fatal) == (message, True)


def test_a_quota_in_order_meets_no_objection() -> None:
    """Its parent is one, bounds the same names, and has the minimum that it wants."""
    assert not _message(spec("C", {"cpu": 10}, {"cpu": 15}, parent="P"), PARENT)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            spec("Q", {}, CPU, parent="nobody"),
            "Q has parentName nobody but no quota has that name",
        ),
        (
            spec("Q", {}, {"cpu": 20}, parent="L"),
            "Q has parentName L but the parentQuotaInfo's IsParent is false",
        ),
        (
            spec("Q", {}, {"cpu": 1, "memory": 1}, parent="P"),
            "checkSubAndParentGroupQuotaKey failed: P's max keys are not the same with Q's",
        ),
        (
            spec("Q", {"cpu": 8}, {"cpu": 9}, parent="P"),
            "checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: P",
        ),
        (
            spec("Q", {}, CPU, parent="P", labels={f"{KEY}tree-id": "b"}),
            "Q tree id is different from parent P, [b] vs [a]",
        ),
    ],
)
def test_what_does_not_agree_with_the_quota_above_names_both(
    new: ElasticQuota, message: str
) -> None:
    """Its parent is missing, is none, bounds others, lacks the minimum, or is of another tree."""
    parent = spec(*("P", {"cpu": 10}, {"cpu": 20}), is_parent=True, labels={f"{KEY}tree-id": "a"})
    brother = spec("B", {"cpu": 3}, {"cpu": 9}, parent="P")
    objection = Validation(_Quotas(parent, brother, spec("L", {}, {"cpu": 20}))).objection(new)
    assert objection is not None
    assert (objection.message, objection.fatal) == (message, False)


def test_who_may_update_keys_may_bound_fewer_than_the_quota_above() -> None:
    """With the gate a subset of the parent's names will do; more than those still do not."""
    parent = spec("P", {"cpu": 1}, {"cpu": 2, "memory": 2}, is_parent=True)
    gates = ValidationGates(updates_keys=True)
    check = Validation(_Quotas(parent), gates).objection
    assert check(spec("C", {}, CPU, parent="P")) is None
    objection = check(spec("C", {}, {"gpu": 1}, parent="P"))
    assert objection is not None
    assert objection.message == (
        "checkSubAndParentGroupQuotaKey failed: C's max keys are not all included in P's"
    )
    least = check(spec("C", {"memory": 1}, {"memory": 2}, parent="P"))
    assert least is not None
    assert least.message.endswith("failed: C's min keys are not all included in P's")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (("", "", ""), ""),
        (("t", "t", "t"), ""),
        (("t", "t", ""), ""),
        (("t", "", "t"), ""),
        (("", "t", "t"), "Q tree id is different from parent P, [t] vs []"),
        (("t", "t", "u"), "Q tree id is different from child C, [t] vs [u]"),
        (("t", "", "u"), "Q tree id is different from child C, [t] vs [u]"),
        (("", "", "u"), "Q tree id is different from child C, [] vs [u]"),
    ],
)
def test_a_tree_id_is_that_of_the_quotas_above(ids: tuple[str, str, str], message: str) -> None:
    """Parent, quota, child: without an id a quota is in the tree of its parent."""
    parent, new, child = (
        spec(
            name,
            {"cpu": 1},
            {"cpu": 1},
            parent=above,
            is_parent=True,
            labels={f"{KEY}tree-id": tree} if tree else {},
        )
        for name, above, tree in zip("PQC", ("", "P", "Q"), ids, strict=True)
    )
    assert _message(new, parent, child, old=new) == message


def test_a_circle_of_parents_is_named() -> None:
    """A below b below a: whoever closes the circle is told who is below it."""
    below = spec("b", {}, CPU, parent="a", is_parent=True)
    message = _message(spec("a", {}, CPU, parent="b", is_parent=True), below)
    assert message == "a has parentName b, which is below a"


def test_a_parent_with_children_stays_one_and_keeps_their_minimums() -> None:
    """IsParent may not become false, nor the minimum less than the children's sum."""
    child = spec("C", {"cpu": 10}, {"cpu": 20}, parent="P")
    assert _message(spec("P", {"cpu": 10}, {"cpu": 20}), child, old=PARENT) == (
        "quota has children, isParent is forbidden to modify as false, quotaName:P"
    )
    less = spec("P", {"cpu": 9}, {"cpu": 20}, is_parent=True)
    assert _message(less, child, old=PARENT) == (
        "checkMinQuotaSum all children's MinQuota > current MinQuota, current: P"
    )
    forced = {f"{KEY}allow-force-update": "true"}
    forcing = spec("P", {"cpu": 9}, {"cpu": 20}, is_parent=True, labels=forced)
    assert not _message(forcing, child, old=PARENT)


def test_a_quota_with_pods_does_not_become_a_parent_and_its_tree_stays() -> None:
    """Pods are in leaves, as the peer has it; a tree id never changes."""
    old, new = spec("Q", {}, CPU), spec("Q", {}, CPU, is_parent=True)
    objection = Validation(_Quotas(old, pods={"Q": ("p",)})).objection(new, old)
    assert objection is not None
    assert objection.message == (
        "quota has bound pods, isParent is forbidden to modify as true, quotaName: Q"
    )
    trees = [spec("Q", {}, CPU, labels={f"{KEY}tree-id": word}) for word in "ab"]
    assert _message(trees[1], old=trees[0]) == "Q tree id changed [a] vs [b]"


def test_a_maximum_that_is_checked_strictly_does_not_fall_below_what_is_used() -> None:
    """Names of the annotation alone; one that nobody uses is skipped."""
    notes = {f"{KEY}max-strict-check-resource-keys": '["memory","gpu","disk"]'}
    body = quotas.quota("Q", {}, {"memory": "1Gi", "gpu": 1}, annotations=notes)
    body["status"] = {"used": {"memory": "2Gi", "cpu": 5}}
    assert _message(elastic_quota(body)) == "resourceKey memory of quota Q max 1Gi < used 2Gi"
    body["status"] = {"used": {"disk": 5}}
    assert _message(elastic_quota(body)) == (
        "resourceKey disk of quota Q is included in used,"
        " which is not included in max but should check max >= used"
    )


def test_a_minimum_is_covered_by_what_the_quotas_above_are_guaranteed() -> None:
    """Going up, a parent whose guarantee suffices ends it; the top that does not is named."""
    top = spec("T", {"cpu": 4}, {"cpu": 20}, is_parent=True)
    middle = spec("M", {"cpu": 4}, {"cpu": 20}, is_parent=True, parent="T")
    leaf = spec("L", {"cpu": 4}, {"cpu": 20}, parent="M")
    gates = ValidationGates(guarantees=True)
    covered = _Quotas(top, middle, guaranteed={"T": {"cpu": 4_000}, "M": {"cpu": 1_000}})
    assert Validation(covered, gates).objection(leaf) is None
    lacking = _Quotas(top, middle, guaranteed={"T": {"cpu": 3_000}, "M": {"cpu": 1_000}})
    objection = Validation(lacking, gates).objection(leaf)
    assert objection is not None
    assert objection.message == "tree root quota T can't guarantee for min"
    assert objection.path == "spec.min.cpu"
    assert objection.fix.startswith("T would need cpu:4:")


def test_a_quota_with_pods_or_children_should_not_be_deleted() -> None:
    """The first three are named; the built-in ones stay whatever they hold."""
    pods = {"C": ("d", "b", "a", "c")}
    known = _Quotas(PARENT, spec("C", {}, CPU, parent="P"), pods=pods)
    assert validation.deletion(known, "C") == (
        "delete quota failed, quota C has 4 child pods: a, b, c, ..."
    )
    assert validation.deletion(known, "P") == ("delete quota failed, quota P has 1 child quotas: C")
    assert not validation.deletion(known, "free")
    assert "built in" in validation.deletion(known, "koordinator-default-quota")


def test_minimums_beyond_the_cluster_are_said_with_numbers() -> None:
    """Nobody refuses them: they are scaled; a name in order is not listed."""
    minimums = [{"cpu": 5_000, "memory": 1 << 30}, {"cpu": 6_500}]
    assert validation.overcommitted(minimums, {"cpu": 10_000, "memory": 1 << 30}) == (
        "the minimums below the root add up to more than the total: cpu:11500m > cpu:10"
    )
    assert not validation.overcommitted(minimums, {"cpu": 11_500, "memory": 1 << 30})
