"""A pydantic model as a structural schema: the part of OpenAPI v3 that API servers accept.

Covers: references inlined, nulls and titles dropped, open objects marked.
Does not cover: the definition around it (``definitions``).

Rules (``apiextensions/v1``, "Specifying a structural schema"):
1. Every node says its type, unless it is int-or-string. No references, no nulls, no ``anyOf`` but
   that of int-or-string.
2. A keyword that is not in ``KEPT`` is a bug of ours, said here and not by somebody's API server.
3. A default is kept where it is a value; ``null`` means absent, and so there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from koordlet.report.crds import fields

Schema = dict[str, Any]

#: Keywords that go over as they are.
KEPT = (
    *("type", "format", "description", "enum", "pattern"),
    *("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"),
    *(fields.PRESERVE, fields.INT_OR_STRING),
)
_READ = {"$ref", "$defs", "title", "default", "properties", "items", "required", "anyOf", "const"}


def schema(model: type[BaseModel]) -> Schema:
    """The schema of one model, with nothing left to look up."""
    whole = model.model_json_schema(by_alias=True)
    return _node(whole, whole.get("$defs", {}))


def _node(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    if "$ref" in node:
        named = definitions[node["$ref"].rsplit("/", 1)[-1]]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _node({**named, **rest}, definitions)
    if "anyOf" in node and fields.INT_OR_STRING not in node:
        return _optional(node, definitions)
    unknown = node.keys() - {*KEPT, *_READ, "additionalProperties"}
    if unknown:
        msg = f"no keyword of a structural schema: {', '.join(sorted(unknown))}"
        raise ValueError(msg)
    made: Schema = {key: node[key] for key in KEPT if key in node}
    if fields.INT_OR_STRING in node:
        made["anyOf"] = node["anyOf"]
    if node.get("default") is not None:
        made["default"] = node["default"]
    if "items" in node:
        made["items"] = _node(node["items"], definitions)
    if "properties" in node:
        made["properties"] = {
            name: _node(inner, definitions) for name, inner in node["properties"].items()
        }
        if node.get("required"):
            made["required"] = list(node["required"])
    return _bounded(made, node, definitions)


def _bounded(made: Schema, node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Schema of additional properties."""
    more = node.get("additionalProperties")
    if isinstance(more, Mapping):
        made["additionalProperties"] = _node(more, definitions)
    elif more is True:
        made[fields.PRESERVE] = True
    return made


def _optional(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """``X | None``: absence is not being required, and no type of its own."""
    real = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
    if len(real) != 1:
        msg = f"a field of several types: {real}"
        raise ValueError(msg)
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return _node({**real[0], **rest}, definitions)
