"""One cycle for a group: all of it or nothing, over files and over the core."""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene

Body = dict[str, Any]


def three_nodes() -> list[Body]:
    """Twelve CPUs."""
    return [clusters.node(name) for name in ("n1", "n2", "n3")]


def of(gang: str, number: int, minimum: int | None = None, **more: Any) -> list[Body]:
    """Pods of two CPUs each, named after their gang."""
    more.setdefault("cpu", "2")
    return [gangs.member(f"{gang}{place}", gang, minimum, **more) for place in range(1, number + 1)]


def test_a_gang_that_fits_is_bound_with_what_is_beyond_its_minimum() -> None:
    """Minimum 4, five members: all of them, each marked with its group and their number."""
    scene = Scene(*three_nodes(), *of("g", 5, 4))
    outcome = scene.core.step(1.0)
    assert isinstance(outcome, Bind)
    marks = {key: value for key, value in outcome.marks.items() if "bind-gang" in key}
    assert marks["internal.scheduling.koordinator.sh/bind-gang-group-id"] == "d/g"
    assert marks["scheduling.koordinator.sh/bind-gang-member-count"] == "5"
    assert sorted(scene.decided()) == ["g2", "g3", "g4", "g5"]


def test_a_gang_that_does_not_fit_holds_nothing_and_a_plain_pod_gets_the_room() -> None:
    """Minimum 7 of 7: the message names the seventh; nobody else waits for it."""
    scene = Scene(*three_nodes(), *of("g", 7, 7))
    places = scene.decided()
    assert set(places.values()) == {""}
    assert len(places) == 7
    for message in scene.messages.values():
        assert message == (
            'GangGroup "d/g" gets rejected due to member Pod "d/g7" is unschedulable with reason'
            ' "resource gap: {cpu: 2000m}", alreadyWaitForBound: 6'
        )
    assert scene.requested() == 0
    scene.put(clusters.pod("plain", cpu="4", meta={"uid": "plain"}))
    assert scene.decided(1.0) == {"plain": "n1"}


def test_a_gang_that_fits_by_sums_but_not_by_nodes_is_taken_back() -> None:
    """Three CPUs fit once on each node: the fourth of four members fails, and nothing is left."""
    scene = Scene(*three_nodes(), *of("g", 4, 4, cpu="3"), clusters.node("small", cpu="2"))
    assert set(scene.decided().values()) == {""}
    assert scene.messages["g1"] == (
        'GangGroup "d/g" gets rejected due to member Pod "d/g4" is unschedulable with reason'
        ' "0/4 nodes are available: 4 Insufficient cpu.", alreadyWaitForBound: 3'
    )
    assert scene.requested() == 0
    scene.put(clusters.node("large", cpu="3"))
    assert sorted(filter(None, scene.decided().values())) == ["large", "n1", "n2", "n3"]


def test_groups_run_together_or_not_at_all() -> None:
    """The second gang asks for a GPU that nobody has; a node with one lets both go."""
    both = {pod_groups.GROUPS: '["d/a","d/b"]'}
    wants = {"cpu": "1", "nvidia.com/gpu": "1"}
    scene = Scene(
        *three_nodes(),
        *of("a", 2, 2, notes=both),
        gangs.member("b1", "b", 1, requests=wants, notes=both),
    )
    assert set(scene.decided().values()) == {""}
    assert scene.requested() == 0
    scene.put(clusters.node("gpu", allocatable={"nvidia.com/gpu": "1"}))
    assert sorted(scene.decided()) == ["a1", "a2", "b1"]
    assert scene.requested() == 5000


def test_of_two_gangs_for_the_same_room_the_first_gets_all() -> None:
    """Each needs three of four nodes: never two and two."""
    nodes4 = [clusters.node(f"n{place}") for place in range(4)]
    scene = Scene(*nodes4, *of("a", 3, 3, cpu="4"), *of("b", 3, 3, cpu="4"))
    places = scene.decided()
    assert all(places[f"a{place}"] for place in (1, 2, 3))
    assert not any(places[f"b{place}"] for place in (1, 2, 3))


def test_the_more_important_gang_comes_first() -> None:
    """Whenever it came."""
    scene = Scene(*three_nodes(), *of("a", 3, 3, cpu="4"), *of("b", 3, 3, cpu="4", priority=5))
    places = scene.decided()
    assert all(places[f"b{place}"] for place in (1, 2, 3))
    assert not any(places[f"a{place}"] for place in (1, 2, 3))


def test_a_replacement_passes_alone_and_a_new_job_does_not() -> None:
    """Once satisfied: until the last member has gone."""
    scene = Scene(*three_nodes(), *of("g", 4, 4))
    assert all(scene.decided().values())
    scene.confirm()
    scene.drop("g1")
    scene.put(gangs.member("g5", "g", 4, cpu="2"))
    assert scene.decided()["g5"]
    scene.confirm()
    for name in ("g2", "g3", "g4", "g5"):
        scene.drop(name)
    scene.put(*of("g", 3, 4))
    assert set(scene.decided().values()) == {""}
    assert "child pod not collect enough" in scene.messages["g1"]


def test_the_only_member_of_a_gang_is_replaced_beside_siblings_that_run() -> None:
    """The siblings count as satisfied, as after a restart: the group has started already."""
    scene = Scene(
        *three_nodes(),
        gangs.pod_group("g", 2, groups=["d/g", "d/h"]),
        gangs.pod_group("h", 1, policy="waiting-and-running", groups=["d/g", "d/h"]),
        *(gangs.labelled(name, "g") for name in ("g1", "g2")),
        gangs.labelled("h1", "h"),
    )
    assert all(scene.decided().values())
    scene.confirm()
    scene.drop("h1")
    scene.put(gangs.labelled("h2", "h"))
    assert scene.decided()["h2"]


def test_late_members_are_waited_for_and_everybody_hears_it() -> None:
    """Two of three: each has a message; the third lets all of them go."""
    scene = Scene(*three_nodes(), *of("g", 2, 3))
    assert scene.decided() == {"g1": "", "g2": ""}
    assert scene.decided() == {}
    scene.put(gangs.member("g3", "g", 3, cpu="2"))
    assert sorted(scene.decided()) == ["g1", "g2", "g3"]
    assert scene.requested() == 6000


def test_a_pod_group_that_comes_late_changes_or_goes_is_heard_at_once() -> None:
    """Its pods say what they wait for now."""
    pods = [gangs.labelled(f"g{place}", "g", cpu="2") for place in (1, 2)]
    scene = Scene(*three_nodes(), *pods)
    assert scene.decided() == {"g1": "", "g2": ""}
    assert scene.messages["g1"].startswith("can't find gang")
    scene.put(gangs.pod_group("g", 3))
    assert scene.decided(0.1) == {"g1": "", "g2": ""}
    assert "not collect enough" in scene.messages["g2"]
    scene.core.gangs.drop_pod_group("d/g")
    assert scene.decided(0.1) == {"g1": "", "g2": ""}
    assert scene.messages["g1"].startswith("can't find gang")
    scene.put(gangs.pod_group("g", 2))
    assert all(scene.decided(0.1).values())


def test_a_minimum_that_is_lowered_wakes_a_gang_that_did_not_fit() -> None:
    """Seven did not fit, six do: the seventh is refused as an ordinary pod."""
    pods = [gangs.labelled(f"g{place}", "g", cpu="2") for place in range(7)]
    scene = Scene(*three_nodes(), gangs.pod_group("g", 7), *pods)
    assert set(scene.decided().values()) == {""}
    scene.put(gangs.pod_group("g", 6))
    assert len([node for node in scene.decided().values() if node]) == 6
    assert scene.requested() == 12000


def test_members_of_different_schedulers_are_refused_with_their_names() -> None:
    """No half of them is bound."""
    scene = Scene(*three_nodes(), *of("g", 1, 2), gangs.member("g2", "g", 2, schedulerName="other"))
    assert scene.decided() == {"g1": ""}
    assert scene.messages["g1"].startswith("all pods in a single pod group should have the same")
    assert 'got: "default-scheduler" and "other"' in scene.messages["g1"]


def test_members_see_each_other_as_they_see_running_pods() -> None:
    """Anti-affinity between members, ports and spreading are part of the one snapshot."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": clusters.HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
            ]
        }
    }
    more: Body = {"labels": {"app": "x"}, "affinity": apart, "cpu": "1"}
    scene = Scene(*three_nodes(), *of("g", 3, 3, **more))
    assert sorted(scene.decided().values()) == ["n1", "n2", "n3"]
    scene = Scene(*three_nodes(), *of("g", 4, 4, **more))
    assert set(scene.decided().values()) == {""}
    assert scene.requested() == 0


def test_a_binding_that_fails_gives_back_its_own_room_only() -> None:
    """The others stay; the member is tried again alone, as the group was satisfied."""
    scene = Scene(*three_nodes(), *of("g", 4, 4))
    assert all(scene.decided().values())
    failing = scene.core.pod_cache.assumed["d/g2"]
    assert scene.core.unbound(failing, scene.now)
    [notice] = scene.core.gangs.book.take_notices()
    assert (notice.reason, notice.message) == (
        "GangBroken",
        "gang d/g has 3 of 4 members: a binding failed",
    )
    scene.confirm("g1", "g3", "g4")
    assert scene.requested() == 6000
    assert scene.decided()["g2"]


def test_a_broken_gang_that_counts_waiting_members_alone_waits_for_a_whole_minimum() -> None:
    """Its policy says so: the member that was not bound is not bound alone."""
    policy = {pod_groups.MATCH_POLICY: "only-waiting"}
    scene = Scene(*three_nodes(), *of("g", 3, 3, notes=policy))
    assert all(scene.decided().values())
    assert scene.core.unbound(scene.core.pod_cache.assumed["d/g2"], scene.now)
    scene.confirm("g1", "g3")
    assert scene.decided() == {"g2": ""}
    assert "too few for its match policy" in scene.messages["g2"]


def test_after_a_kill_between_two_bindings_the_rest_follows() -> None:
    """Three of six are bound when the scheduler dies: the next one binds the other three, once."""
    pods = of("g", 6, 6)
    scene = Scene(*three_nodes(), *pods)
    places = scene.decided()
    survivors = [
        gangs.member(f"g{place}", "g", 6, cpu="2", on=places[f"g{place}"]) for place in (1, 2, 3)
    ]
    again = Scene(*three_nodes(), *pods[3:], *survivors)
    rest = again.decided()
    assert sorted(rest) == ["g4", "g5", "g6"]
    assert all(rest.values())
    assert again.requested() == 12000


def test_a_form_that_is_switched_off_is_refused_by_name() -> None:
    """A profile without the plugin binds no half of a gang, nor a whole one."""
    default = profile.default("default-scheduler")
    kept = tuple(plugin for plugin in default.plugins if plugin.name != "Coscheduling")
    less = profile.Profile("default-scheduler", kept, default.filters, default.scores)
    core = Core({"default-scheduler": less})
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    pod = core.decoder.decode(gangs.member("p", "g", 1), 0)
    core.pod(None, pod, 0.0)
    outcome = core.step(1.0)
    assert isinstance(outcome, Refusal)
    assert outcome.message == (
        "gang 'g' (annotation gang.scheduling.koordinator.sh/name) is not scheduled: profile"
        " default-scheduler has no plugin Coscheduling; enable it"
    )


def test_kubernetes_own_gangs_have_their_own_messages_and_basic_groups_no_minimum() -> None:
    """Waiting members hear of the minimum; a basic group is decided member by member."""
    pods = [gangs.own(f"k{place}", "k", cpu="3") for place in range(4)]
    scene = Scene(*three_nodes(), clusters.node("s", cpu="2"), gangs.own_group("k", 4), *pods)
    assert set(scene.decided().values()) == {""}
    assert scene.messages["k0"] == "waiting for minCount pods from a gang to be scheduled"
    basic = Scene(*three_nodes(), gangs.own_group("k", None), *pods)
    assert len([node for node in basic.decided().values() if node]) == 3


def test_a_member_that_dies_while_it_waits_takes_the_others_out_of_the_queue() -> None:
    """Too few children are left: they wait before the queue, and say so."""
    scene = Scene(*three_nodes(), *of("g", 3, 3))
    scene.drop("g2")
    assert scene.decided() == {"g1": "", "g3": ""}
    assert "not collect enough" in scene.messages["g3"]


def test_one_broken_member_costs_its_gang_and_nobody_else() -> None:
    """A member that is never tried is named with its reason."""
    odd = gangs.member("g2", "g", 2, workloadRef={"name": "x"})
    scene = Scene(*three_nodes(), *of("g", 1, 2), odd, clusters.pod("plain", meta={"uid": "p"}))
    places = scene.decided()
    assert (places["g1"], places["g2"]) == ("", "")
    assert places["plain"]
    assert 'member Pod "d/g2" is unschedulable' in scene.messages["g1"]
    assert "spec.workloadRef" in scene.messages["g2"]
