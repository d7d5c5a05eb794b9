"""How many series a node exports, by its size and group: the table in ``docs/observe.md``."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.model import counters, meter, pod, qos, topology
from koordlet.report import families, metrics, quantities, view
from tests.kit import views

PAGE = (Path(__file__).parents[2] / "docs/observe.md").read_text()
#: Pods, containers in each, CPUs, NUMA nodes.
SIZES = {"small": (10, 1, 8, 1), "usual": (60, 2, 64, 2), "large": (250, 2, 256, 2)}


def full(subjects: Iterable[str], *tables: str) -> counters.Table:
    """A table in which everything is known that any quantity asks for."""
    slots = {name: number for number, name in enumerate(subjects)}
    column = array("d", [1.0]) * len(slots)
    meters = [row.what for row in quantities.QUANTITIES if row.table in tables and row.what]
    if "groups" in tables:
        meters += [meter.numa_memory(node) for node in range(2)]
        meters += [what for pressure in meter.PRESSURES for what in pressure.meters]
    return counters.Table(
        slots=slots,
        columns=dict.fromkeys(meters, column),
        totals={what: column for what in meters if what.counter},
    )


def node(pods: int, containers: int, cpus: int, nodes: int) -> view.ReportView:
    """A node on cgroup v2 whose counters are all known."""
    machine: topology.Topology = views.machine(cpus, nodes)
    workloads = tuple(
        replace(
            workload,
            kube_qos=qos.KubeQos.BURSTABLE,
            containers=tuple(
                pod.Container(name=f"c{n}", id=f"{workload.uid}{n}", group=f"{workload.group}/c{n}")
                for n in range(containers)
            ),
        )
        for workload in views.pods(pods)
    )
    groups = [
        group
        for workload in workloads
        for group in (workload.group, *(container.group for container in workload.containers))
    ]
    known = [group for group in groups if group is not None]
    used = counters.Usage(
        groups=full(known, "groups"),
        work=full([], "work"),
        node=full([""], "node"),
        cpus=full(map(str, machine.online), "cpus"),
        numa=full(map(str, range(nodes)), "numa"),
        links=full(["eth0"], "links"),
        disks=full(["/", "/var/lib"], "disks"),
        shares=full(["LSE", "LSR", "LS", "BE", "system"], "shares"),
        traffic=full([workload.group for workload in workloads if workload.group], "traffic"),
    )
    usage = {workload.key: 1.0 for workload in workloads}
    return replace(views.view(workloads, shape=machine, usage=usage), used=used)


def counted(now: view.ReportView) -> Counter[str]:
    """Series by group."""
    text = metrics.render(now, "1", {}, metrics.TEXT).decode()
    groups = {family.name: family.group for family in metrics.table()}
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name = re.split(r"[{ ]", line)[0]
        stems = (name, re.sub(r"_(total|bucket|sum|count)$", "", name))
        counts[next(groups[stem] for stem in stems if stem in groups)] += 1
    return counts


@pytest.mark.parametrize("size", SIZES)
def test_the_page_says_how_many_series_there_are(size: str) -> None:
    """Rounded to two digits, in the order of the page's columns."""
    counts = counted(node(*SIZES[size]))
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {size}:"))
    page_figures = [int(cell.replace(" ", "")) for cell in row.split("|")[2:-1]]

    figures = [counts.total(), counts[""], *(counts[group] for group in families.GROUPS)]
    assert page_figures == [int(float(f"{figure:.2g}")) for figure in figures]


def test_a_group_that_is_left_out_has_no_series() -> None:
    """Nor a family; nothing else is missing."""
    now = node(*SIZES["small"])
    every = metrics.render(now, "1", {}, metrics.TEXT).decode().splitlines()
    fewer = metrics.render(now, "1", {}, metrics.TEXT, ["peer", "deprecated"]).decode().splitlines()
    gone = {line.split()[2] for line in set(every) - set(fewer) if line.startswith("# TYPE")}

    assert gone == {
        f"{family.name}_total" if family.type == families.COUNTER else family.name
        for family in metrics.table()
        if family.group in ("peer", "deprecated")
    }
    assert set(fewer) < set(every)
