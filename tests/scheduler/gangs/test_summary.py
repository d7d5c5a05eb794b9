"""What a person is shown of each gang."""

from __future__ import annotations

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.gangs import summary
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene


def shown(scene: Scene) -> dict[str, tuple[int, int | None, str, str]]:
    """By gang: how many are placed, of which minimum, and why it waits."""
    rows = summary.summaries(scene.core, scene.core.gangs.book, scene.core.gangs.network)
    return {row.id: (row.placed, row.min, row.member, row.message) for row in rows}


def test_a_gang_waits_for_the_member_that_failed_until_the_cycle_that_places_it() -> None:
    """The reason is the last cycle's; decided members count as placed before the store says so."""
    scene = Scene(clusters.node("n", cpu="3"))
    scene.put(*[gangs.member(name, "g", 3, cpu="1") for name in "ab"])
    scene.put(gangs.member("c", "g", 3, cpu="1", nodeSelector={"zone": "x"}))
    scene.decided()
    placed, least, member, message = shown(scene)["d/g"]
    assert (placed, least, member) == (0, 3, "d/c")
    assert message.startswith("0/1 nodes are available: 1 node(s) didn't match")
    scene.put(clusters.node("m", labels={"zone": "x"}))
    scene.decided()
    assert shown(scene) == {"d/g": (3, 3, "", "")}


def test_a_gang_that_may_not_enter_the_queue_says_what_it_lacks() -> None:
    """A minimum, pods, any pod at all; a gang that others only name has no row."""
    scene = Scene(gangs.pod_group("empty", 2))
    scene.put(gangs.member("a", "bare"), gangs.labelled("b", "lost"))
    scene.put(gangs.member("c", "few", 2, notes={pod_groups.GROUPS: '["d/few","d/x"]'}))
    rows = shown(scene)
    assert rows["d/empty"] == (0, 2, "", "it has no pods")
    assert rows["d/bare"] == (0, None, "d/a", "gang has not init, gangName: d/bare, podName: d/a")
    assert rows["d/lost"][3].startswith("can't find gang")
    assert "memberGangs [d/x] doesn't exists" in rows["d/few"][3]
    assert list(rows) == ["d/bare", "d/empty", "d/few", "d/lost"]


def test_a_member_beyond_the_minimum_that_has_no_node_is_what_its_gang_waits_for() -> None:
    """The minimum is placed, and still somebody wants to know."""
    scene = Scene(clusters.node("n", cpu="2"))
    scene.put(*[gangs.member(name, "g", 2, cpu="1") for name in "abc"])
    scene.decided()
    placed, least, member, message = shown(scene)["d/g"]
    assert (placed, least, member) == (2, 2, "d/c")
    assert "Insufficient cpu" in message


def test_a_gathered_gang_shows_the_lowest_place_that_its_members_share() -> None:
    """One member: its node; two in one rack: the rack; elsewhere, and without a wish: nothing."""
    racks = {"n": "r", "m": "r", "o": ""}
    cluster = [clusters.node(name, labels={"net/rack": rack}) for name, rack in racks.items()]
    gathered = gangs.pod_group("g", 1, gather=gangs.gather(rack="Prefer"))
    scene = Scene(gangs.network("rack"), *cluster, gathered, gangs.pod_group("h", 1))

    def place(gang: str) -> str | None:
        gangs_ = scene.core.gangs
        rows = summary.summaries(scene.core, gangs_.book, gangs_.network)
        return next(str(row.document()["place"]) for row in rows if row.id == gang)

    scene.put(gangs.labelled("a", "g", on="n"), gangs.labelled("x", "h", on="n"))
    assert (place("d/g"), place("d/h")) == ("NodeTopologyLayer/n", "None")
    scene.put(gangs.labelled("b", "g", on="m"))
    assert place("d/g") == "rack/r"
    scene.put(gangs.labelled("c", "g", on="o"))
    assert place("d/g") == "None"
