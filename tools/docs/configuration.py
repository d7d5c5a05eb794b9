"""The reference page of the configuration, rendered from the schema.

Covers: ``docs/configuration.md``, every field with type, default, variable and description.
Does not cover: the tour of the configuration in the user guide.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from koordlet.config import catalog, layers, places, plain, schema, sections
from koordlet.scheduler.disruption import settings

_INTRODUCTION = f"""\
# Configuration

<!-- Generated from the schema by tools.docs.configuration: edit the schema, then run
     `python -m tools.docs.configuration > docs/configuration.md`. -->

The configuration is one YAML file: `{places.DEFAULT_PATH}`, or the file given by `--config`. It
begins with

```yaml
apiVersion: {schema.API_VERSION}
kind: {schema.KIND}
```

All other keys have defaults. Unknown keys, wrong types, duplicate keys, anchors, aliases, tags and
further documents are errors. koordlet reports all errors of a file together, each with line, column
and field. Plain words follow YAML 1.2: `off` and `no` are text.

`koordlet config` prints the effective values with their origins, `koordlet config --schema` the
JSON schema for editors.

## Precedence

Sources, from weakest to strongest: built-in value, file, (in a cluster) ConfigMap, NodeSLO, node
annotations, pod annotations, `KOORDLET_*` variables, flags. koordlet applies
`policies.<stem>.limits` last; no source can exceed them. Sections and maps are merged key by key;
lists and single values are replaced as a whole.

The name of a variable is the path in capitals, with two underscores between sections and one
between words: `state.handoverSeconds` is `KOORDLET_STATE__HANDOVER_SECONDS`. Lists and maps have no
variable. An unknown `KOORDLET_` variable is an error. `KOORDLET_ROOT` and `KOORDLET_CONFIG` belong
to the command line; koordlet ignores names that begin with `KOORDLET_K8S_`, `KOORDLET_RDT_` or
`KOORDLET_TEST_`.

## Reload

koordlet reloads the file when it changes and on SIGHUP. If the new file is invalid, missing or
empty, koordlet reports it once and keeps the last good configuration.

The column *reload* below says when a changed value is in effect: *next tick*, or *restart*. The log
event `config.needs_restart` lists the values of the newest file that wait for a restart.

Once ready, the agent saves its configuration as `last-config.yaml` beside its journal. An agent
that starts with an invalid file runs with that saved text until the file is repaired. It reports
this on standard error, in the check `configuration`, in the condition `ConfigurationRefused` and in
`systemctl status`. If there is no saved text, or another user could have written it, the agent only
observes, with the built-in values; it is alive but not ready. Limits of the previous agent then
stay until their deadline, and the agent starts anew with the first valid file. If `state.dir` is
not the usual directory, set it by `--state-dir` or the variable, because koordlet needs it before
it reads the file. An error on the command line or in a variable prevents the start.

`last-answer.json` beside it has what was made of that file, so that a start with the same file,
variables, options and version of koordlet need not validate it again. It holds the file's text, is
readable by koordlet's user alone, and may be removed at any time.
"""

_RESCHEDULING = f"""
## {settings.KIND}

A document of the file of `koordlet scheduler --config FILE`: who may evict, and how often
([disruption](disruption.md)). It begins with `apiVersion: {settings.API_VERSION}` and
`kind: {settings.KIND}`, and is read again when the file changes.
"""

#: A value of the reference table that has no variable or default.
_NONE = "—"


def render() -> str:
    """Render the whole page."""
    sections.described(schema.Config)
    parts = [_INTRODUCTION, "## Top level\n", *_table(_top_level())]
    for title, rows in _sections():
        parts += [f"\n## {title}\n", *_table(rows)]
    parts += [_RESCHEDULING, *_rescheduling()]
    return "\n".join(parts) + "\n"


def _rescheduling() -> Iterator[str]:
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key in settings.KEYS:
        yield f"| `{key.path}` | {key.takes} | {key.default} | {key.meaning} |"


def _top_level() -> list[tuple[str, ...]]:
    return [row(field) for field in catalog.fields() if len(field.loc) == 1]


def _sections() -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    for key, info in catalog.section_fields(schema.Config):
        fields = [f for f in catalog.fields() if f.loc[0] == key and len(f.loc) > 1]
        if fields:
            yield f"{key}\n\n{info.description}", [row(field) for field in fields]
        elif key == "workloads":
            yield f"{key}[]\n\n{info.description}", list(_workload_rows())


def _workload_rows() -> Iterator[tuple[str, ...]]:
    properties = _whole()["$defs"]
    for section, above in (("Workload", ""), ("Match", "match.")):
        required = properties[section].get("required", [])
        for key, info in properties[section]["properties"].items():
            if "$ref" in info:
                continue
            default = (
                _NONE if section == "Match" else _workload_default(info, required=key in required)
            )
            description = _cell(info["description"])
            yield (f"`{above}{key}`", _kind(info), default, _NONE, "next tick", description)


def _workload_default(info: dict[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    return _default({} if info.get("type") == "object" else info.get("default"))


def row(field: catalog.Field) -> tuple[str, str, str, str, str, str]:
    """Key, type, default, variable, when a reload takes it, what it is; ready for a cell each."""
    kind = _kind(_schema_of(field.loc))
    default = _default(_defaults().get(field.loc))
    variable = f"`{field.variable}`" if field.scalar else _NONE
    reload = "restart" if field.at_start else "next tick"
    return f"`{field.path}`", kind, default, variable, reload, _cell(field.info.description or "")


# Both are asked for by every row, and cost tens of milliseconds each time they are made.
@functools.cache
def _whole() -> dict[str, Any]:
    return schema.json_schema()


@functools.cache
def _defaults() -> dict[places.Loc, Any]:
    return dict(layers.leaves(plain.document(schema.defaults())))


def _schema_of(loc: places.Loc) -> dict[str, Any]:
    whole = node = _whole()
    for key in loc:
        node = node["properties"][key]
        if "$ref" in node:
            node = whole["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return node


def _kind(info: dict[str, Any]) -> str:
    if "enum" in info:
        return ", ".join(f"`{word}`" for word in info["enum"])
    if "anyOf" in info:
        return " or ".join(_kind(choice) for choice in info["anyOf"])
    kinds: str | list[str] = info.get("type", "")
    words: dict[str, str] = {"integer": "whole number", "boolean": "true or false", "array": "list"}
    words |= {"object": "map", "string": "text"}
    listed = kinds if isinstance(kinds, list) else [kinds]
    bounds = ""
    if "minimum" in info and "maximum" in info:
        bounds = f" {info['minimum']} to {info['maximum']}"
    elif "minimum" in info:
        bounds = f" ≥ {info['minimum']}"
    return " or ".join(words.get(kind, kind) for kind in listed) + bounds


def _default(value: object) -> str:
    return f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    head = ("key", "type", "default", "variable", "reload", "meaning")
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    import sys

    sys.stdout.write(render())
