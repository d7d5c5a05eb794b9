"""What the feed says between two revisions."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cgroup, cpuset, pod, qos, topology
from koordlet.report import view
from koordlet.rpc import feed
from koordlet.rpc.gen import feed_pb2
from tests.kit import views

SECTIONS = feed.SECTIONS


def event(data: bytes) -> feed_pb2.WatchEvent:
    """An event from its bytes."""
    return feed_pb2.WatchEvent.FromString(data)


def sections(message: feed_pb2.Node | feed_pb2.Delta) -> set[str]:
    """The sections that a message has."""
    return {name for name in SECTIONS if message.HasField(name)}


def new(now: view.ReportView | None = None) -> feed.Feed:
    """A feed that has published once."""
    it = feed.Feed("1.2.3")
    it.publish(views.view() if now is None else now)
    return it


def test_node_is_complete() -> None:
    """Every field of the view that the feed has is in the node."""
    node = feed_pb2.Node.FromString(new().node())

    assert (node.epoch, node.revision) == ("epoch-1", 1)
    assert feed_pb2.Summary(
        name="n1",
        machine_id="machine-1",
        boot_id="boot-1",
        mode="enforce",
        ready=True,
        version="1.2.3",
    ) == (node.summary)
    assert feed_pb2.Cpu(cpu=2, online=True, core=1, socket=0, node=0, l3=0) == node.topology.cpus[2]
    assert feed_pb2.Cpu(cpu=7, online=False) == node.topology.cpus[7]
    assert (
        node.topology.nodes[1].cpus,
        node.topology.nodes[1].memory_bytes,
        list(node.topology.nodes[1].distances),
    ) == ("4-6", 1 << 30, [21, 10])
    assert (node.observed_at.seconds, node.observed_at.nanos) == (1_790_000_000, 250_000_000)


def test_node_says_who_has_what() -> None:
    """Claims, pools, workloads, conditions and what is missing are in the node."""
    node = feed_pb2.Node.FromString(new().node())
    claim = feed_pb2.Claim(
        owner="reserved", cpus="0-1", holder="node", policy="reserved_cpus", reason="configured"
    )
    web = feed_pb2.Workload(
        uid="uid-web",
        namespace="default",
        name="web",
        qos="LS",
        cgroup="shop/web",
        cpus="2-6",
        usage_milli=1500,
    )

    assert claim == node.allocation.claims[0]
    assert feed_pb2.Pool(kind="LS", cpus="4-6", socket=0, node=1) == node.allocation.pools[1]
    assert web == node.workloads.workloads[0]
    assert not node.workloads.workloads[1].HasField("usage_milli")
    assert node.conditions.conditions[0].type == "PoolTooSmall"
    assert node.conditions.unsupported[0].feature == "resctrl"


def test_same_content_is_the_same_revision() -> None:
    """A new view that says nothing new is no event."""
    it = new()
    before = it.refresh()
    it.publish(views.view(at=101.0, counters=view.AgentCounters(ticks=43)))

    assert it.refresh() == before


def test_delta_has_what_changed() -> None:
    """Only the sections that changed are in a delta."""
    it = new()
    it.refresh()
    it.publish(views.view(usage={"default/web": 2.0}))

    delta = event(it.since(1))

    assert (delta.revision, sections(delta.delta)) == (2, {"workloads"})


def test_delta_over_several_revisions() -> None:
    """Who missed revisions gets the newest of each section that changed since, once."""
    it = new()
    it.refresh()
    it.publish(views.view(usage={"default/web": 2.0}))
    it.refresh()
    it.publish(views.view(usage={"default/web": 3.0}, mode="observe"))

    delta = event(it.since(1)).delta

    assert sections(delta) == {"summary", "workloads"}
    assert delta.workloads.workloads[0].usage_milli == 3000
    assert sections(event(it.since(2)).delta) == {"summary", "workloads"}


def test_only_encoded_when_asked() -> None:
    """Views that nobody asked for cost no revision."""
    it = new()
    it.refresh()
    for cores in (2.0, 3.0, 4.0):
        it.publish(views.view(usage={"default/web": cores}))

    assert it.refresh() == 2


def test_encoded_once() -> None:
    """All who ask for the same event get the same bytes."""
    it = new()

    assert it.full() is it.full()
    assert it.node() is it.node()
    assert it.since(0) is it.since(0)


def test_event_is_never_of_an_older_view() -> None:
    """A kept event is forgotten with the view that it is of, also where nothing changed."""
    it = new()
    it.heartbeat()
    later = views.view()
    it.publish(dataclasses.replace(later, snapshot=dataclasses.replace(later.snapshot, wall=7.0)))

    assert event(it.heartbeat()).observed_at.seconds == 7


def test_resumable() -> None:
    """Only a revision of this epoch that there has been can be gone on from."""
    it = new()
    it.refresh()

    assert it.resumable("epoch-1", 1)
    assert not it.resumable("epoch-1", 2)
    assert not it.resumable("epoch-1", 0)
    assert not it.resumable("epoch-0", 1)
    assert not it.resumable("", 1)
    assert not feed.Feed("1").resumable("", 0)


def test_names_that_are_no_text() -> None:
    """A group whose name is no UTF-8 is said as well as it can be."""
    odd = dataclasses.replace(views.workload("web"), group="shop/\udcff")

    node = feed_pb2.Node.FromString(new(views.view((odd,))).node())

    assert node.workloads.workloads[0].cgroup == "shop/?"


def test_cpus_while_unknown() -> None:
    """A workload whose group is gone has no CPUs; one on an old kernel has those asked for."""
    web = views.workload("web")
    seen = views.view((web,))
    asked = cgroup.Group(path="shop/web", inode=1, values={"cpuset.cpus": "1"})
    old = dataclasses.replace(seen, snapshot=dataclasses.replace(seen.snapshot, groups={}))
    other = dataclasses.replace(
        seen, snapshot=dataclasses.replace(seen.snapshot, groups={"shop/web": asked})
    )

    gone, there = (
        feed_pb2.Node.FromString(new(view_).node()).workloads.workloads[0] for view_ in (old, other)
    )

    assert not gone.HasField("cpus")
    assert there.cpus == "1"


@st.composite
def changes(draw: st.DrawFn) -> view.ReportView:
    """Views that differ in any of the sections."""
    machine = topology.Topology(
        cpus=tuple(topology.Cpu(cpu=n) for n in range(draw(st.integers(0, 2))))
    )
    workloads: tuple[pod.Pod, ...] = tuple(
        views.workload(f"p{n}", qos.Qos.BE) for n in range(draw(st.integers(0, 2)))
    )
    return views.view(
        workloads,
        shape=machine,
        usage=dict.fromkeys(
            [workload.key for workload in workloads], draw(st.sampled_from([None, 0.0, 1.0]))
        ),
        made=views.made_plan(**draw(st.sampled_from([{}, {"conditions": ()}]))),
        mode=draw(st.sampled_from(["enforce", "observe"])),
    )


@given(st.lists(st.tuples(changes(), st.booleans()), min_size=1, max_size=8))
def test_a_watcher_that_reads_now_and_then_knows_the_node(
    steps: list[tuple[view.ReportView, bool]],
) -> None:
    """Applying the events that were read, whichever were missed, gives the node as it is."""
    it = feed.Feed("1.2.3")
    known: feed_pb2.Node | None = None
    for now, reads in [*steps, (steps[-1][0], True)]:
        it.publish(now)
        if reads:
            known = applied(known, it)

    assert known is not None
    node = feed_pb2.Node.FromString(it.node())
    assert known == node


def applied(known: feed_pb2.Node | None, it: feed.Feed) -> feed_pb2.Node:
    """What a watcher knows after reading what is new."""
    if known is None or not it.resumable(known.epoch, known.revision):
        return event(it.full()).full
    news = event(it.since(known.revision))
    for name in sections(news.delta):
        getattr(known, name).CopyFrom(getattr(news.delta, name))
    known.revision = news.revision
    known.observed_at.CopyFrom(news.observed_at)
    return known


def test_pools_on_a_machine_without_nodes() -> None:
    """What the machine does not say is absent, not zero."""
    ledger = views.made_plan().ledger
    pool = dataclasses.replace(ledger.pools[0], node=None, cpus=cpuset.CPUSet.of([0]))
    made = views.made_plan(ledger=dataclasses.replace(ledger, pools=(pool,)))

    node = feed_pb2.Node.FromString(new(views.view(made=made)).node())

    assert not node.allocation.pools[0].HasField("node")
