"""The reference page of the configuration, rendered from the schema.

Covers: ``docs/configuration.md``, every field with type, default, variable and description.
Does not cover: the tour of the configuration in the user guide.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from koordlet.config import catalog, layers, places, plain, schema, sourced

_INTRODUCTION = f"""\
# Configuration

<!-- Generated from the schema by tools.docs.configuration: edit the schema, then run
     `python -m tools.docs.configuration > docs/configuration.md`. -->

One YAML file, `{sourced.DEFAULT_PATH}` or the one that `--config` names. It begins with

```yaml
apiVersion: {schema.API_VERSION}
kind: {schema.KIND}
```

Everything else has a default. Unknown keys, wrong types, duplicate keys, anchors, aliases, tags and
further documents are errors; all errors of a file are shown together, each with line, column and
field. Plain words follow YAML 1.2: `off` and `no` are text.

`koordlet config` prints the effective values and where each comes from, `koordlet config --schema`
prints the JSON schema for editors.

## Precedence

From the weakest to the strongest: the built-in value, the file, in a cluster the ConfigMap, the
NodeSLO, node and pod annotations, then `KOORDLET_*` variables, then flags. `policies.<stem>.limits`
are applied after all of them, and nothing exceeds them. Sections and maps are merged key by key;
lists and single values are replaced whole.

A variable is the path in capitals, sections joined by two underscores and words by one:
`state.handoverSeconds` is `KOORDLET_STATE__HANDOVER_SECONDS`. Lists and maps have none. An unknown
`KOORDLET_` variable is an error; `KOORDLET_ROOT` and `KOORDLET_CONFIG` belong to the command line,
and names that begin with `KOORDLET_RDT_` or `KOORDLET_TEST_` are left alone.

## Reload

The file is read again when it changes and on SIGHUP. A bad new file is reported once and the last
good configuration stays; so it does when the file vanishes or becomes empty.

An agent keeps the text that it is ready with as `last-config.yaml` beside its journal. One that
starts with a file that cannot be used runs with that text, and says so on standard error, in the
check and condition (`configuration`, `ConfigurationRefused`) and in `systemctl status`, until the
file is mended. Where there is none, or somebody else may have written it, the agent observes with
the built-in values, alive and not ready: limits of an agent before it stay until their deadline,
and the first good file begins it anew. Where `state.dir` is not the usual one, say so by
`--state-dir` or the variable: it is looked up before the file can be read. An error on the
command line or in a variable ends a start.
"""

#: A value of the reference table that has no variable or default.
_NONE = "—"


def render() -> str:
    """Render the whole page."""
    parts = [_INTRODUCTION, "## Top level\n", *_table(_top_level())]
    for title, rows in _sections():
        parts += [f"\n## {title}\n", *_table(rows)]
    return "\n".join(parts) + "\n"


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
            yield (f"`{above}{key}`", _kind(info), default, _NONE, _cell(info["description"]))


def _workload_default(info: dict[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    return _default({} if info.get("type") == "object" else info.get("default"))


def row(field: catalog.Field) -> tuple[str, str, str, str, str]:
    """Key, type, default, variable, what it is; ready for a cell each."""
    kind = _kind(_schema_of(field.loc))
    default = _default(_defaults().get(field.loc))
    variable = f"`{field.variable}`" if field.scalar else _NONE
    return f"`{field.path}`", kind, default, variable, _cell(field.info.description or "")


# Both are asked for by every row, and cost tens of milliseconds each time they are made.
@functools.cache
def _whole() -> dict[str, Any]:
    return schema.json_schema()


@functools.cache
def _defaults() -> dict[places.Loc, Any]:
    return dict(layers.leaves(plain.document(schema.defaults())))


def _schema_of(loc: places.Loc) -> dict[str, Any]:
    whole = found = _whole()
    for key in loc:
        found = found["properties"][key]
        if "$ref" in found:
            found = whole["$defs"][found["$ref"].rsplit("/", 1)[-1]]
    return found


def _kind(info: dict[str, Any]) -> str:
    if "enum" in info:
        return ", ".join(f"`{word}`" for word in info["enum"])
    if "anyOf" in info:
        return " or ".join(_kind(one) for one in info["anyOf"])
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
    head = ("key", "type", "default", "variable", "what it is")
    lines = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    import sys

    sys.stdout.write(render())
