"""The page ``docs/metrics.md``, from the table of families.

Covers: one row for each family. Does not cover: the series of ``prometheus_client``, which has its
own documentation.

    python -m tools.docs.metrics > docs/metrics.md
"""

from __future__ import annotations

import sys

from koordlet.report import families, metrics

_HEAD = """\
# Metrics

`/metrics` answers in Prometheus text (0.0.4), or in OpenMetrics (1.0.0) where `Accept` prefers it.

The agent also exports the `process_*` families of its own process. A family exports at most the
number of series in the table, or 256 where the table gives no number; `koordlet_series_dropped`
counts the rest. Label values are cut at 256 characters. An unknown value has no sample. The label
`node` is the node's name, `numa_node` the number of a NUMA node.

Families of a group are left out where `report.metrics.without` names the group;
[observe.md](observe.md#how-many-series) has their sizes. The group `deprecated` has names of the
last version: rates that the agent computed, for which there is a counter now, and names that clash
with Prometheus' conventions. The next version drops them. `koordlet_share_*` stay rates: workloads
come to a QoS class and leave it, so a class has no total.

This page is generated: `python -m tools.docs.metrics > docs/metrics.md`.

| name | type | group | labels | series | meaning |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_row(family) for family in sorted(metrics.table(), key=lambda f: f.name))


def _row(family: families.Family) -> str:
    name = f"{family.name}_total" if family.type == families.COUNTER else family.name
    labels = ", ".join(f"`{label}`" for label in family.labels)
    cells = (f"`{name}`", family.type, family.group, labels, family.bound, family.help)
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
