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


def _node(found: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    if "$ref" in found:
        named = definitions[found["$ref"].rsplit("/", 1)[-1]]
        rest = {key: value for key, value in found.items() if key != "$ref"}
        return _node({**named, **rest}, definitions)
    if "anyOf" in found and fields.INT_OR_STRING not in found:
        return _optional(found, definitions)
    unknown = found.keys() - {*KEPT, *_READ, "additionalProperties"}
    if unknown:
        msg = f"no keyword of a structural schema: {', '.join(sorted(unknown))}"
        raise ValueError(msg)
    made: Schema = {key: found[key] for key in KEPT if key in found}
    if fields.INT_OR_STRING in found:
        made["anyOf"] = found["anyOf"]
    if found.get("default") is not None:
        made["default"] = found["default"]
    if "items" in found:
        made["items"] = _node(found["items"], definitions)
    if "properties" in found:
        made["properties"] = {
            name: _node(one, definitions) for name, one in found["properties"].items()
        }
        if found.get("required"):
            made["required"] = list(found["required"])
    return _bounded(made, found, definitions)


def _bounded(made: Schema, found: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Schema of additional properties."""
    more = found.get("additionalProperties")
    if isinstance(more, Mapping):
        made["additionalProperties"] = _node(more, definitions)
    elif more is True:
        made[fields.PRESERVE] = True
    return made


def _optional(found: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """``X | None``: absence is not being required, and no type of its own."""
    real = [one for one in found["anyOf"] if one.get("type") != "null"]
    if len(real) != 1:
        msg = f"a field of several types: {real}"
        raise ValueError(msg)
    rest = {key: value for key, value in found.items() if key != "anyOf"}
    return _node({**real[0], **rest}, definitions)
