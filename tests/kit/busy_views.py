"""A view of a node on which a pod and a host application use something.

Covers: tables of what is used, the view. Does not cover: what is said of it (the tests).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from koordlet.history import space
from koordlet.model import counters, meter, pod, prediction, qos
from koordlet.report import view
from tests.kit import counting, views


def table(values: Mapping[meter.Meter, float], names: Iterable[str]) -> counters.Table:
    """The same values for each of these subjects, whatever they are counted as."""
    columns = {dataclasses.replace(what, counter=False): n for what, n in values.items()}
    kept, listed = space.Space(), list(names)
    kept.take(counting.reading(0, {c: [n] * len(listed) for c, n in columns.items()}, names=listed))
    families = kept.table()
    back = dict(zip(columns, values, strict=True))
    return counters.Table(
        slots=families.slots,
        columns={back.get(c, c): column for c, column in families.columns.items()},
    )


POD = dataclasses.replace(
    views.workload("p"),
    kube_qos=qos.KubeQos.BURSTABLE,
    containers=(
        pod.Container(
            name="c",
            id="0123",
            runtime="cri-o",
            group="shop/p/c",
            requests={
                "cpu": 500,
                "memory": 2**30,
                "hugepages-2Mi": 2**21,
                "koordinator.sh/gpu-memory-ratio": 50,
            },
        ),
    ),
)
APP = dataclasses.replace(views.workload("nginx"), priority=9500)


def busy_view() -> view.ReportView:
    """One pod with one container, and one host application, that use something."""
    psi = {what: float(n) for n, what in enumerate(meter.PRESSURE_CPU.meters, 1)}
    psi |= dict.fromkeys(meter.PRESSURE_MEMORY.some, 9.0)
    values = {meter.CPU: 1.5, meter.WORKING_SET: 2.0**20, meter.MEMORY_ANON: 2.0**19}
    values |= {meter.THROTTLED: 0.25, **psi}
    groups = ["shop/p", "shop/p/c", "shop/nginx"]
    return views.view(
        (POD, APP),
        used=counters.Usage(
            groups=table(values, groups),
            node=table({meter.CPU: 3.0, meter.WORKING_SET: 2.0**30}, [""]),
            cpus=table({meter.CPU: 0.5}, ["0", "7"]),
            numa=table({meter.CPU: 3.0}, ["0"]),
            shares=table({meter.CPU_SHARE: 1.0}, ["system"]),
            links=table({meter.SENT: 7.0}, ["eth0"]),
        ),
        predicted=prediction.Prediction(reclaimable={"cpu": 2.5}, peak={"memory": 9.0}),
        counters=view.AgentCounters(files={"read": 12, "gone": 1}, descriptors=5),
    )
