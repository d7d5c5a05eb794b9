"""Who is in which gang, and which gangs are satisfied together."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.gangs.book import GangBook, GangEntry, Lack
from koordlet.scheduler.gangs.gang import GangDefaults
from koordlet.scheduler.objects.pods import Pod
from tests.kit import gangs


def group_of(book: GangBook, key: str) -> tuple[str, ...]:
    """The ids of the group of a gang."""
    return book.group(entry(book, key)).ids


def entry(book: GangBook, key: str) -> GangEntry:
    """A gang that there is."""
    known = book.get(key)
    assert known is not None
    return known


def put(book: GangBook, *bodies: gangs.Body) -> list[Pod]:
    """Take in pods and PodGroups; the pods."""
    pods = []
    for body in bodies:
        if body["kind"] == "Pod":
            pods.append(gangs.decoded(body))
            book.put(pods[-1])
        else:
            book.put_pod_group(pod_groups.pod_group(body))
    return pods


def test_gated_and_terminating_pods_are_members_and_no_children() -> None:
    """Nobody waits for a pod that cannot be tried."""
    book = GangBook()
    put(
        book,
        gangs.member("a", "g", 1),
        gangs.member("b", "g", 1, schedulingGates=[{"name": "x"}]),
        gangs.member("c", "g", 1, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    )
    gang = entry(book, "d/g")
    assert sorted(gang.members) == ["d/a", "d/b", "d/c"]
    assert sorted(gang.children) == ["d/a"]


def test_a_group_is_connected_in_either_direction_and_the_silent_gang_is_noticed() -> None:
    """``a`` names ``b``, ``b`` names itself only: one group, and an event for ``b``."""
    book = GangBook()
    put(
        book,
        gangs.member("pa", "a", 1, notes={pod_groups.GROUPS: '["d/a","d/b"]'}),
        gangs.member("pb", "b", 1, notes={pod_groups.GROUPS: '["d/b"]'}),
        gangs.member("pc", "c", 1, notes={pod_groups.GROUPS: '["d/b"]'}),
    )
    assert group_of(book, "d/b") == ("d/a", "d/b", "d/c")
    assert {(notice.pod.name, notice.reason) for notice in book.take_notices()} == {
        (name, "GangGroupOneSided") for name in ("pa", "pb", "pc")
    }


def test_a_group_falls_apart_when_the_gang_that_names_the_others_goes() -> None:
    """What nobody names any more is forgotten."""
    book = GangBook()
    bundling, _ = put(
        book,
        gangs.member("pa", "a", 1, notes={pod_groups.GROUPS: '["d/a","d/b","d/x"]'}),
        gangs.member("pb", "b", 1),
    )
    assert group_of(book, "d/b") == ("d/a", "d/b", "d/x")
    assert book.group(entry(book, "d/b")).lacks[Lack.EXISTENCE] == {"d/x"}
    book.drop(bundling)
    assert group_of(book, "d/b") == ("d/b",)
    assert [each.key for each in book] == ["d/b"]


def test_the_first_readable_pod_configures_the_gang_and_others_change_nothing() -> None:
    """The gang without a minimum is not initialised until one comes; a PodGroup outweighs both."""
    book = GangBook()
    put(book, gangs.member("a", "g"))
    assert entry(book, "d/g").lacking() is Lack.DEFINITION
    put(book, gangs.member("b", "g", 2), gangs.member("c", "g", 7))
    gang = entry(book, "d/g").gang
    assert gang is not None
    assert gang.min == 2
    assert [notice.reason for notice in book.take_notices()] == ["GangConfigurationIgnored"]
    put(book, gangs.pod_group("g", 3))
    gang = entry(book, "d/g").gang
    assert gang is not None
    assert gang.min == 3
    book.drop_pod_group("d/g")
    gang = entry(book, "d/g").gang
    assert gang is not None
    assert gang.min == 2


def test_a_pod_whose_annotation_is_repaired_configures_the_gang_that_had_no_configuration() -> None:
    """Whoever mends the minimum in place needs no further pod."""
    book = GangBook()
    put(book, gangs.member("a", "g", "two"), gangs.member("b", "g", "two"))
    assert entry(book, "d/g").lack is Lack.DEFINITION
    put(book, gangs.member("b", "g", 2))
    gang = entry(book, "d/g").gang
    assert gang is not None
    assert gang.min == 2
    assert entry(book, "d/g").lack is Lack.NOTHING


def test_a_member_whose_annotation_changes_hears_that_the_first_configuration_counts() -> None:
    """The minimum of a gang without an object is not changed by its pods, and that is said once."""
    book = GangBook()
    put(book, gangs.member("a", "g", 3))
    put(book, gangs.member("a", "g", 2), gangs.member("a", "g", 2))
    gang = entry(book, "d/g").gang
    assert gang is not None
    assert gang.min == 3
    assert [notice.reason for notice in book.take_notices()] == ["GangConfigurationIgnored"]


def test_satisfied_once_from_the_first_bound_child_to_the_last_child_of_any_gang() -> None:
    """A replacement passes alone; a job that starts anew does not."""
    book = GangBook()
    first, second = put(book, gangs.member("a", "g", 2), gangs.member("b", "g", 2))
    gang = entry(book, "d/g")
    assert not book.group(gang).satisfied
    book.put(dataclasses.replace(first, node="n"))
    assert book.group(gang).satisfied
    book.drop(first)
    assert book.group(gang).satisfied
    [third] = put(book, gangs.member("c", "g", 2))
    book.drop(second)
    assert book.group(gang).satisfied
    book.drop(third)
    assert book.get("d/g") is None
    put(book, gangs.member("e", "g", 2))
    assert not book.group(entry(book, "d/g")).satisfied


def test_a_group_stays_satisfied_while_a_sibling_runs_and_starts_anew_without() -> None:
    """The last child of one gang ends nothing beside a running other; the last running one does."""
    book = GangBook()
    runs, waits = gangs.labelled("a", "g", on="n"), gangs.labelled("b", "g")
    book.put_pod_group(pod_groups.pod_group(gangs.pod_group("g", 1, groups=["d/g", "d/h"])))
    running, _, only = put(book, runs, waits, gangs.labelled("c", "h"))
    book.drop(only)
    assert book.group(entry(book, "d/g")).satisfied
    book.drop(running)
    assert not book.group(entry(book, "d/g")).satisfied


def test_a_pod_that_changes_its_gang_leaves_the_old_one() -> None:
    """Labels may change while a pod waits."""
    book = GangBook()
    put(book, gangs.labelled("a", "g"), gangs.labelled("a", "h"))
    assert book.get("d/g") is None
    assert sorted(entry(book, "d/h").children) == ["d/a"]


def test_ten_thousand_gangs_of_one_group_cost_seconds_and_not_hours() -> None:
    """Each carries the whole list: it is kept once, and a message does not repeat it."""
    number = 10_000
    names = json.dumps([f"d/g{place}" for place in range(number)])
    book = GangBook()
    began = time.process_time()
    groups = pod_groups.gang_annotations({pod_groups.GROUPS: names}).groups
    for place in range(number):
        pod = gangs.decoded(gangs.member(f"p{place}", f"g{place}", 1))
        assert pod.gang is not None
        stated = dataclasses.replace(pod.gang.annotations, groups=groups)
        pod.gang = dataclasses.replace(pod.gang, annotations=stated)
        book.put(pod)
    assert book.group(entry(book, "d/g77")).ready
    assert len(book.group(entry(book, "d/g1")).entries) == number
    assert time.process_time() - began < 20


@pytest.mark.parametrize("late", [False, True], ids=["PodGroup first", "pod first"])
def test_what_a_gang_asks_for_and_does_not_get_is_noticed_whichever_object_comes_first(
    *, late: bool
) -> None:
    """Gathering that is ignored and what cannot be read, of a PodGroup: once, on a member."""
    book = GangBook(GangDefaults(gathers=False))
    gather = {"gatherStrategy": [{"layer": "Rack", "strategy": "PreferGather"}]}
    pod_group = gangs.pod_group("g", 2, policy="sometimes", gather=gather)
    pods = [gangs.labelled("a", "g"), gangs.labelled("b", "g")]
    put(book, *([pods[0], pod_group, pods[1]] if late else [pod_group, *pods]))
    notices = [(each.pod.name, each.reason, each.message) for each in book.take_notices()]
    assert [(name, reason) for name, reason, _ in notices] == [
        ("a", "GangUnreadable"),
        ("a", "GangSettingIgnored"),
    ]
    assert notices[1][2] == "gang d/g: awareNetworkTopology is false: its members are not gathered"
