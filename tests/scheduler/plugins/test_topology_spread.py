"""Topology spread constraints: who may go where, and who had better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import profile
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.plugins.topology_spread import PodTopologySpread
from tests.kit import clusters, schedulers
from tests.kit.clusters import HOST, Body, node, pod, spread

WEB = {"app": "web"}
ZONES = [node(f"{zone}{i}", labels={"zone": zone}) for zone in "ab" for i in (1, 2)]
SAID = "node(s) didn't match pod topology spread constraints"


def web(name: str, *constraints: Body, **more: Any) -> Body:
    """A pod that counts itself."""
    return pod(name, labels=WEB, topologySpreadConstraints=list(constraints), **more)


def test_the_emptier_zone() -> None:
    """One pod more than in the emptiest domain is too many for a skew of one."""
    places = clusters.places(*ZONES, pod("o", on="a1", labels=WEB), web("p", spread("zone")))

    assert places["p"] == "b1"


def test_terminating_pods_do_not_count() -> None:
    """A pod that is on its way out is not counted."""
    leaving = pod("o", on="a1", labels=WEB, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    outcome = clusters.tried(*ZONES, leaving, web("p", spread("zone")))

    assert set(outcome["placements"][0]["scores"]) == {"a1", "a2", "b1", "b2"}


def test_a_missing_key_has_its_own_message() -> None:
    """Nodes without the key can never do."""
    full = node("c", labels={"zone": "c"}, cpu="1")

    assert (
        f"0/2 nodes are available: 1 Insufficient cpu, 1 {SAID} (missing required label)."
        == clusters.message("p", node("x"), full, web("p", spread("zone"), cpu="2"))
    )


def test_too_few_domains_make_the_least_zero() -> None:
    """With fewer domains than minDomains the least is 0."""
    crowd = [pod(f"o{i}", on=f"{zone}1", labels=WEB) for i, zone in enumerate("ab")]
    wanted = web("p", spread("zone", minDomains=3))

    assert f"0/4 nodes are available: 4 {SAID}." == clusters.message("p", *ZONES, *crowd, wanted)


def test_domains_of_nodes_that_affinity_excludes() -> None:
    """The policy Honor leaves them out of the least, Ignore does not."""
    crowd = [pod("o", on="a1", labels=WEB)]
    chosen: Body = {"nodeSelector": {"zone": "a"}}

    assert clusters.places(*ZONES, *crowd, web("p", spread("zone"), **chosen))["p"] == "a2"
    ignoring = web("p", spread("zone", nodeAffinityPolicy="Ignore"), **chosen)
    assert SAID in clusters.message("p", *ZONES, *crowd, ignoring)


def test_an_empty_selector_counts_nobody_but_itself() -> None:
    """The peer's surprise: existing pods count as 0, the incoming one as 1."""
    crowd = [pod(f"o{i}", on="a1") for i in range(5)]
    outcome = clusters.tried(*ZONES, *crowd, web("p", spread("zone", labelSelector={})))

    assert len(outcome["placements"][0]["scores"]) == 4


def test_soft_constraints_score() -> None:
    """0 and 2 matching pods: 100 * (2 + 0 - 0) / 2 and 0, with the weight ln(2 + 2)."""
    crowd = [pod(f"o{i}", on="a1", labels=WEB, cpu="0", memory="0") for i in range(2)]
    wanted = web("p", spread("zone", "ScheduleAnyway"), cpu="0", memory="0")
    scores = clusters.scores("p", *ZONES, *crowd, wanted)

    assert scores["b1"] - scores["a1"] == 200


def test_default_constraints_need_a_service() -> None:
    """Pods of one service are spread over hosts although they say nothing."""
    service = {
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "d"},
        "spec": {"selector": WEB},
    }
    nodes = [node("n1"), node("n2", cpu="3500m")]
    crowd = [pod("o", on="n1", labels=WEB, cpu="0", memory="0")]
    wanted = pod("p", labels=WEB, cpu="0", memory="0")

    assert clusters.places(*nodes, *crowd, wanted)["p"] == "n1"
    assert clusters.places(*nodes, service, *crowd, wanted)["p"] == "n2"


def test_nodes_without_a_zone_are_one_more_zone_of_the_default_constraints() -> None:
    """Three pods and one weigh ln(2 + 3): round(6 ln 5 + 6) is 16, round(2 ln 5 + 6) is 9."""
    service = {
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "d"},
        "spec": {"selector": WEB},
    }
    zone = "topology.kubernetes.io/zone"
    nodes = [node("n1", labels={zone: "a"}), node("n2", labels={zone: "b"}), node("n3")]
    crowd = [
        pod(f"o{number}", on=name, labels=WEB, cpu="0", memory="0")
        for number, name in enumerate(("n1", "n1", "n1", "n2"))
    ]
    scores = clusters.scores(
        "p", service, *nodes, *crowd, pod("p", labels=WEB, cpu="0", memory="0")
    )

    assert scores["n2"] - scores["n1"] == 2 * (100 * (16 + 2 - 9) // 16 - 100 * 2 // 16)


def test_match_label_keys() -> None:
    """Only pods with the incoming pod's own value count."""
    crowd = [pod("o", on="a1", labels={**WEB, "hash": "old"})]
    wanted = web("p", spread("zone", matchLabelKeys=["hash"]))
    wanted["metadata"]["labels"] = {**WEB, "hash": "new"}

    assert len(clusters.tried(*ZONES, *crowd, wanted)["placements"][0]["scores"]) == 4


def test_each_of_many_goes_elsewhere() -> None:
    """Counts follow the pods that the same run places."""
    wanted = [web(f"p{i}", spread(HOST)) for i in range(4)]

    assert set(clusters.places(*ZONES, *wanted).values()) == {"a1", "a2", "b1", "b2"}


async def test_a_service_that_goes_lets_pods_in_that_the_default_constraints_kept_out(
    ram: Path,
) -> None:
    """Without it nothing groups them; nobody has to wait until everybody is tried again."""
    spread = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    arguments = {"PodTopologySpread": {"defaultConstraints": [spread], "defaultingType": "List"}}
    profiles = {schedulers.NAME: profile.default(schedulers.NAME, arguments)}
    service = {
        "metadata": {"name": "s", "namespace": "d"},
        "spec": {"selector": WEB, "ports": [{"port": 1}]},
    }
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("open")
        await world.node("closed", spec={"unschedulable": True})
        await world.store.create(kinds.SERVICES, service)
        async with schedulers.scheduler(world.client, profiles=profiles):
            await world.pod("first", labels=WEB)
            await world.until_placed("first")
            await world.pod("second", labels=WEB)
            await world.until_told("second", "didn't match pod topology spread constraints")
            await world.store.delete(objects.Ref(kinds.SERVICES, "s", "d"))
            await world.until_placed("second")


def test_an_owner_wakes_pods_of_its_namespace_without_constraints_of_their_own() -> None:
    """All others are where they were."""
    plugin = PodTopologySpread({})
    event = ClusterEvent(ActionType.OWNERS, namespace="d")
    own = pod("p", topologySpreadConstraints=[spread(HOST)])
    woken = {
        name: plugin.helps(event, Decoder({}).decode(body, 0).pod_class)
        for name, body in (("none", pod("p")), ("own", own), ("away", pod("p", namespace="e")))
    }
    assert woken == {"none": True, "own": False, "away": False}
