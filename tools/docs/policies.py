"""The page ``docs/policies.md``, from the list of policies, their headers, the schema, the metrics.

Covers: for each policy what it does, whom it protects, formula, rules, keys, what it writes, what
shows it, how it is switched off (``policy_parts`` has the words that no code has).
Does not cover: the topics that several policies share; their pages are linked.

    python -m tools.docs.policies > docs/policies.md
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator

from koordlet.config import catalog
from koordlet.policy.framework import registry
from koordlet.report import metrics
from tools.docs import configuration, policy_parts

_HEAD = """\
# Policies

Each decides one thing from what was seen, and states what shall be; the plan of all of them is
what is written. They are asked in this order, and where two want different values in one file, the
earlier one wins (`koordlet plan` says so).

For every one of them:

* `policies.<stem>.mode: off` switches it off, `shadow` makes it decide and show without writing.
  What it wrote before is put back with the next pass.
* `koordlet plan` shows what it would write now and why, `koordlet explain write PATH` who wants
  what in one file, `koordlet audit --policy STEM` what it did. The console shows the same.
* `mode: observe` makes all of them decide without writing.
* What protects others is undone by its own policy, the operator or a final stop and by nobody else.

This page is generated: `python -m tools.docs.policies > docs/policies.md`.

| policy | default mode | what it decides |
|---|---|---|
"""
#: Stem to the page about its topic, where there is one.
_TOPICS = {
    **dict.fromkeys(("reserved_cpus", "exclusive_cpus", "shared_pools"), "cpu.md"),
    **dict.fromkeys(("bound_quota", "cpu_normalization"), "cpu.md"),
    **dict.fromkeys(("cpu_suppress", "adaptive", "batch_resources"), "best-effort.md"),
    **dict.fromkeys(("cpu_burst", "memory_qos"), "qos.md"),
    **dict.fromkeys(("core_scheduling", "cpu_qos"), "cpu.md"),
    **dict.fromkeys(("node_pressure", "local_storage_evict"), "eviction.md"),
    **dict.fromkeys(("batch_limits", "blkio_qos", "page_cache_reclaim"), "best-effort.md"),
    **dict.fromkeys(("cpu_evict", "cpu_allocatable_evict", "memory_evict"), "eviction.md"),
    "housekeeping": "cpu.md",
    "memory_allocatable_evict": "eviction.md",
    "network_qos": "network.md",
    "resctrl": "resctrl.md",
    "system_qos": "best-effort.md",
}
_LITERAL = re.compile(r"``([^`]+)``")


def page() -> str:
    """The whole page."""
    rows = [
        f"| [{one.stem}](#{one.stem}) | {one.default_mode.value} | {one.summary} |"
        for one in registry.POLICIES
    ]
    parts = [line for one in registry.POLICIES for line in _section(one)]
    return _HEAD + "\n".join([*rows, "", *parts])


def _section(one: registry.Row) -> Iterator[str]:
    yield f"## {one.stem}\n"
    header = importlib.import_module(one.decide.__module__).__doc__ or ""
    _, _, rest = _LITERAL.sub(r"`\1`", header).partition("\n\n")
    yield f"{one.summary[0].upper()}{one.summary[1:]}. By default: {one.default_mode.value}.\n"
    for paragraph in rest.strip().split("\n\n"):
        yield paragraph.replace("Rules:\n", "Rules:\n\n", 1) + "\n"
    yield f"**Protects:** {_protects(one)}.\n"
    parts = policy_parts.PARTS[one.stem]
    yield f"**Formula:** `{parts.formula}`\n"
    yield f"**Writes:** {parts.writes}.\n"
    counted = [
        each.name for each in metrics.table() if each.name.startswith(f"koordlet_{one.stem}")
    ]
    numbers = f"; metrics {_listed(sorted(counted))}" if counted else ""
    yield f"**See it:** {parts.see}; `koordlet audit --policy {one.stem}`{numbers}.\n"
    yield f"**Off:** `policies.{one.stem}.mode: off`; {parts.off}.\n"
    fields = [field for field in catalog.fields() if field.path.startswith(_prefix(one))]
    rows = [f"| `{field.path.removeprefix(_prefix(one))}` | {_meant(field)} |" for field in fields]
    yield "\n".join(
        [f"| key below `policies.{one.stem}` | default; meaning |", "|---|---|", *rows, ""]
    )
    if one.stem in _TOPICS:
        yield f"More: [{_TOPICS[one.stem]}]({_TOPICS[one.stem]}).\n"


def _protects(one: registry.Row) -> str:
    if one.protects:
        return f"{one.protects}; the guard never takes it back"
    return "nobody; [the guard](best-effort.md#the-guard) takes a step back that hurts"


def _meant(field: catalog.Field) -> str:
    """Meaning of a key on the reference page, in one cell."""
    _, _, default, *_, description = configuration.row(field)
    return f"{default}; {description}"


def _prefix(one: registry.Row) -> str:
    return f"policies.{one.stem}."


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in names)


if __name__ == "__main__":
    sys.stdout.write(page())
