"""What is used, as series under our names and those of the peer."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.model import counters, meter, pod
from koordlet.report import metrics, node_json
from tests.kit import views
from tests.kit.busy_views import APP, POD, busy_view, table
from tests.report import test_metrics


@pytest.mark.parametrize("form", test_metrics.FORMS)
def test_our_names(form: metrics.TextFormat) -> None:
    """Workloads, containers, CPUs, interfaces, shares, and the reading itself."""
    series = test_metrics.scraped(busy_view(), form)
    ours = {"namespace": "default", "name": "p", "qos": "LS"}
    inside = {"namespace": "default", "pod": "p", "container": "c"}
    expected: list[tuple[str, dict[str, str], float]] = [
        ("koordlet_workload_memory_working_set_bytes", ours, 2**20),
        ("koordlet_workload_cpu_throttled_ratio", ours, 0.25),
        ("koordlet_workload_pressure_ratio", ours | {"resource": "cpu", "degree": "full"}, 8),
        ("koordlet_container_cpu_cores", inside, 1.5),
        ("koordlet_cpu_usage_ratio", {"cpu": "7"}, 0.5),
        ("koordlet_link_bytes_rate", {"interface": "eth0", "direction": "sent"}, 7),
        ("koordlet_share_cpu_cores", {"class": "system"}, 1),
        ("koordlet_counter_files_total", {"event": "read"}, 12),
        ("koordlet_counter_descriptors", {}, 5),
    ]
    for name, labels, number in expected:
        assert number == test_metrics.value(series, name, **labels), name


@pytest.mark.parametrize("form", test_metrics.FORMS)
def test_the_peers_names(form: metrics.TextFormat) -> None:
    """Names, labels and units are those of dashboards that exist."""
    series = test_metrics.scraped(busy_view(), form)
    node, core = {"node": "n1"}, {"resource": "cpu", "unit": "core"}
    of_pod = {"pod_uid": "uid-p", "pod_name": "p", "pod_namespace": "default"}
    of_container = {"container_id": "cri-o://0123", "container_name": "c", **of_pod}
    psi = {
        "psi_resource_type": "cpu",
        "psi_precision": "avg60",
        "psi_degree": "some",
        "cpu_full_supported": "true",
    }
    app = {"host_application_name": "nginx", "priority_class": "koord-prod", "qos": "LS"}
    expected: list[tuple[str, dict[str, str], float]] = [
        ("koordlet_node_used_cpu_cores", {}, 3),
        ("koordlet_node_used_memory_bytes", {}, 2**30),
        ("koordlet_node_metric_node_usage", core, 3),
        ("koordlet_node_metric_system_usage", core, 1),
        ("koordlet_node_metric_numa_node_usage", core | {"numa_node_id": "0"}, 3),
        ("koordlet_host_application_resource_usage", app | {"resource": "cpu"}, 1.5),
        ("koordlet_host_application_resource_usage", app | {"resource": "memory"}, 2**19),
        ("koordlet_pod_psi", of_pod | psi, 2),
        ("koordlet_container_psi", of_container | psi, 2),
        (
            "koordlet_container_psi",
            of_container | psi | {"psi_resource_type": "mem", "cpu_full_supported": "false"},
            9,
        ),
        ("koordlet_container_resource_requests", of_container | core, 0.5),
        (
            "koordlet_container_resource_requests",
            of_container | {"resource": "memory", "unit": "byte"},
            2**30,
        ),
        *(
            ("koordlet_container_resource_requests", of_container | {"resource": n, "unit": u}, v)
            for n, u, v in (
                ("hugepages-2Mi", "byte", 2**21),
                ("koordinator.sh/gpu-memory-ratio", "integer", 50),
            )
        ),
        (
            "koordlet_node_predicted_resource_reclaimable",
            core | {"predictor": "minPredictor"},
            2.5,
        ),
    ]
    for name, labels, number in expected:
        assert number == test_metrics.value(series, name, **node, **labels), name


@pytest.mark.parametrize(("own", "expected"), [(0.0, 0.25), (0.5, 0.5)], ids=["v1", "v2"])
def test_kills_are_counted_where_they_happen(own: float, expected: float) -> None:
    """On v1 the pod's group does not hear of one in a container; on v2 it has all of them."""
    counted = table({meter.OOM_KILLS: own}, ["shop/p"])
    inside = table({meter.OOM_KILLS: 0.25}, ["shop/p", "shop/p/c"])
    column = inside.columns[meter.OOM_KILLS][:]
    column[inside.slots["shop/p"]] = counted.columns[meter.OOM_KILLS][0]
    groups = counters.Table(slots=inside.slots, columns={meter.OOM_KILLS: column})
    series = test_metrics.scraped(views.view((POD,), used=counters.Usage(groups=groups)))
    labels = {"namespace": POD.namespace, "name": "p", "qos": "LS"}

    assert (
        test_metrics.value(series, "koordlet_workload_memory_oom_kills_rate", **labels) == expected
    )


def test_what_is_unknown_has_no_sample() -> None:
    """Without a reading there is no series of use, and nothing breaks."""
    series = test_metrics.scraped(views.view((POD, APP), usage={}))

    assert not [name for name, _ in series if "_workload_" in name or "_psi" in name]
    assert not [labels for name, labels in series if ("resource", "koordinator.sh/odd") in labels]


@pytest.mark.parametrize("form", test_metrics.FORMS)
def test_memory_of_nodes_with_gaps(form: metrics.TextFormat) -> None:
    """A NUMA node is called as the machine calls it, also where numbers have gaps."""
    nodes = {meter.numa_memory(0): 5.0, meter.numa_memory(8): 7.0}
    now = views.view(
        (POD, APP),
        used=counters.Usage(
            groups=table(nodes, ["shop/p", "shop/p/c", "shop/nginx"]),
            numa=table({meter.CPU: 3.0}, ["0", "8"]),
        ),
    )
    series = test_metrics.scraped(now, form)
    samples = {
        dict(labels)["numa_node"]: value
        for (name, labels), value in series.items()
        if name == "koordlet_workload_memory_numa_bytes" and ("name", "p") in labels
    }

    assert samples == {"0": 5.0, "8": 7.0}
    assert node_json.workload_usage(now, POD)["memoryNumaBytes"] == [5, 7]


def test_a_large_node_is_not_cut() -> None:
    """250 pods and 500 containers, the size of the budgets, with everything that is counted."""
    pods = tuple(
        dataclasses.replace(
            POD,
            uid=f"u{n}",
            name=f"p{n}",
            group=f"g/{n}",
            containers=tuple(
                pod.Container(
                    name=f"c{m}",
                    id=f"{n}-{m}",
                    group=f"g/{n}/{m}",
                    requests={"cpu": 1, "memory": 1, "kubernetes.io/batch-cpu": 1},
                    limits={"cpu": 1, "memory": 1},
                )
                for m in range(2)
            ),
        )
        for n in range(250)
    )
    groups = [pod.group or "" for pod in pods]
    groups += [part.group or "" for pod in pods for part in pod.containers]
    meters = (meter.CPU, meter.WORKING_SET, meter.MEMORY, meter.THROTTLED, meter.PIDS)
    stalls = [what for family in meter.PRESSURES for what in family.meters]
    used = counters.Usage(groups=table(dict.fromkeys((*meters, *stalls), 1.0), groups))
    series = test_metrics.scraped(views.view(pods, used=used))

    assert not [labels for name, labels in series if name == "koordlet_series_dropped"]
    assert len([1 for name, _ in series if name == "koordlet_container_psi"]) == 500 * 18
