"""The page ``docs/policies.md``, from the list of policies, their headers, the schema, the metrics.

Covers: for each policy what it does, whom it protects, formula, rules, keys, what it writes, what
shows it, how it is switched off (the list that ends a header has the words that no code has).
Does not cover: the topics that several policies share; their pages are linked.

    python -m tools.docs.policies > docs/policies.md
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping

from koordlet.config import catalog
from koordlet.policy.framework import declaration, registry
from koordlet.report import metrics
from tools.docs import configuration

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
#: Paragraph of a header that ends it: formula, files, where to look, how it is switched off.
_WORDS = re.compile(r"^\* (\w+): ", re.MULTILINE)
_OFF = "what it wrote goes back to what was there before"
_LITERAL = re.compile(r"``([^`]+)``")


def page() -> str:
    """The whole page."""
    rows = [
        f"| [{policy.stem}](#{policy.stem}) | {policy.default_mode.value} | {policy.summary} |"
        for policy in registry.POLICIES
    ]
    parts = [line for policy in registry.POLICIES for line in _section(policy)]
    return _HEAD + "\n".join([*rows, "", *parts])


def _section(policy: declaration.Declared) -> Iterator[str]:
    yield f"## {policy.stem}\n"
    header = importlib.import_module(policy.decide.__module__).__doc__ or ""
    _, *paragraphs, last = _LITERAL.sub(r"`\1`", header).strip().split("\n\n")
    summary = f"{policy.summary[0].upper()}{policy.summary[1:]}"
    yield f"{summary}. By default: {policy.default_mode.value}.\n"
    for paragraph in paragraphs:
        yield paragraph.strip().replace("Rules:\n", "Rules:\n\n", 1) + "\n"
    yield f"**Protects:** {_protects(policy)}.\n"
    words = words_of(last)
    yield f"**Formula:** `{words['Formula']}`\n"
    yield f"**Writes:** {words['Writes']}.\n"
    counted = [
        family.name
        for family in metrics.table()
        if family.name.startswith(f"koordlet_{policy.stem}")
    ]
    numbers = f"; metrics {_listed(sorted(counted))}" if counted else ""
    yield f"**See it:** {words['See']}; `koordlet audit --policy {policy.stem}`{numbers}.\n"
    yield f"**Off:** `policies.{policy.stem}.mode: off`; {words.get('Off', _OFF)}.\n"
    fields = [field for field in catalog.fields() if field.path.startswith(_prefix(policy))]
    rows = [
        f"| `{field.path.removeprefix(_prefix(policy))}` | {_meant(field)} |" for field in fields
    ]
    yield "\n".join(
        [f"| key below `policies.{policy.stem}` | default; meaning |", "|---|---|", *rows, ""]
    )
    if "More" in words:
        yield f"More: [{words['More']}]({words['More']}).\n"


def words_of(paragraph: str) -> Mapping[str, str]:
    """Name to text of the list that ends a header."""
    _, *parts = _WORDS.split(paragraph)
    return {
        name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _protects(policy: declaration.Declared) -> str:
    if policy.protects:
        return f"{policy.protects}; the guard never takes it back"
    return "nobody; [the guard](best-effort.md#the-guard) takes a step back that hurts"


def _meant(field: catalog.Field) -> str:
    """Meaning of a key on the reference page, in one cell."""
    _, _, default, *_, description = configuration.row(field)
    return f"{default}; {description}"


def _prefix(policy: declaration.Declared) -> str:
    return f"policies.{policy.stem}."


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(page())
