"""/metrics with 10 000 series against joining ready lines.

Covers: our own writer on 20 families of 500 workloads with 3 labels. Does not cover: HTTP, gzip.
"""

from __future__ import annotations

import ctypes
import dataclasses
import time

from koordlet.report import metrics, usage_families
from tests.bench import gate
from tests.kit import views

#: What is held, and the budget, which is the goal.
LIMIT, GOAL = 7.0, 6.0
_WORKLOADS = 500
_FAMILIES = 20
#: malloc.h: from this size on memory is mapped, and given back when it is freed.
_M_MMAP_THRESHOLD, _BYTES = -3, 128 << 10


def ten_thousand_series() -> gate.Ratio:
    """The whole text, encoded, as bytes for the wire.

    Both sides get fresh memory for their texts, as an agent does that is asked twice a minute.
    glibc moves the bound by what was freed before, and joining into memory that is there already
    takes a fifth of the time: without a fixed bound the ratio would depend on what was imported.
    """
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BYTES)
    workloads = views.pods(_WORKLOADS)
    now = views.view(
        workloads, usage={workload.key: 1.0 / (n + 3) for n, workload in enumerate(workloads)}
    )
    model = next(
        family for family in usage_families.FAMILIES if family.name == "koordlet_workload_cpu_cores"
    )
    bulk = [dataclasses.replace(model, name=f"{model.name}_{n}") for n in range(_FAMILIES)]
    writer = metrics.MetricsWriter()
    parts, _ = writer.write(bulk, now, metrics.TEXT)
    ready = "\n".join(parts).split("\n")

    def ours() -> float:
        before = time.process_time()
        lines, _ = writer.write(bulk, now, metrics.TEXT)
        "\n".join(lines).encode("utf-8", "replace")
        return time.process_time() - before

    def joining() -> float:
        before = time.process_time()
        "\n".join(ready).encode("utf-8", "replace")
        return time.process_time() - before

    best, reference = gate.interleaved(ours, joining, repeats=15)
    return gate.Ratio(
        name="metrics.ten_thousand_series",
        ours=best,
        reference=reference,
        limit=LIMIT,
        goal=GOAL,
        unit="s",
        against="joining ready lines",
    )
