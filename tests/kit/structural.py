"""What an API server does with the schema of a custom resource: checks, prunes, fills in, refuses.

Covers: the rules of structural schemas (``apiextensions/v1``) that our definitions can break;
pruning, defaults and validation of objects by them.
Does not cover: validation rules in CEL, list types; our definitions have neither.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EITHER = "x-kubernetes-int-or-string"

_TYPES = {"object", "array", "string", "integer", "number", "boolean"}
#: Keywords that a node of a structural schema may have.
_KEYWORDS = {
    *("type", "format", "description", "default", "enum", "pattern", "nullable", "title"),
    *("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"),
    *("properties", "required", "items", "additionalProperties", "anyOf", PRESERVE, EITHER),
}
_ANY_OF = [{"type": "integer"}, {"type": "string"}]
_PYTHON = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}

Schema = Mapping[str, Any]


def faults(schema: Schema, at: str = "") -> Iterator[str]:
    """Why an API server would refuse this schema."""
    for word in schema.keys() - _KEYWORDS:
        yield f"{at}: unknown keyword {word}"
    yield from _type_faults(schema, at)
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{at}: an array without items"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{at}: properties and additionalProperties exclude each other"
    for name in schema.get("required", ()):
        if name not in schema.get("properties", {}):
            yield f"{at}: required {name} is no property"
    if "default" in schema:
        value = schema["default"]
        if value in ("", None):
            yield f"{at}: an empty default, which kube-apiserver 1.20 takes for null"
        yield from (f"{at}: default: {problem}" for problem in problems(schema, value))
        if pruned(schema, value) != value:
            yield f"{at}: default would be pruned"
    below = dict(schema.get("properties", {}))
    below |= {name: schema[name] for name in ("items", "additionalProperties") if name in schema}
    for name, schema_below in below.items():
        yield from faults(schema_below, f"{at}.{name}")


def _type_faults(schema: Schema, at: str) -> Iterator[str]:
    kind = schema.get("type")
    if schema.get(EITHER):
        if "type" in schema or schema.get("anyOf", _ANY_OF) != _ANY_OF:
            yield f"{at}: int-or-string has no type and this anyOf only"
    elif kind not in _TYPES:
        yield f"{at}: type {kind!r}"
    elif "anyOf" in schema:
        yield f"{at}: anyOf beside a type"


def problems(schema: Schema, value: Any, at: str = "") -> Iterator[str]:
    """Why an API server would refuse this object."""
    yield from _scalar(schema, value, at)
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}.{name}: required"
        for name, element in value.items():
            below = _below(schema, name)
            if below is not None:
                yield from problems(below, element, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        if len(value) < schema.get("minItems", 0):
            yield f"{at}: too few items"
        for number, element in enumerate(value):
            yield from problems(schema["items"], element, f"{at}[{number}]")


def _scalar(schema: Schema, value: Any, at: str) -> Iterator[str]:
    kind = schema.get("type")
    if schema.get(EITHER):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{at}: neither integer nor string: {value!r}"
    elif kind is not None:
        right = isinstance(value, _PYTHON.get(str(kind), (int, float)))
        if not right or (isinstance(value, bool) and kind != "boolean"):
            yield f"{at}: no {kind}: {value!r}"
            return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not match"
    if kind == "integer" and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        yield f"{at}: {value} is out of bounds"


def pruned(schema: Schema, value: Any) -> Any:
    """The object without what the schema does not know."""
    if isinstance(value, dict):
        if "properties" not in schema and "additionalProperties" not in schema:
            return value if schema.get(PRESERVE) else {}
        kept = {}
        for name, inner in value.items():
            below = _below(schema, name)
            if below is not None:
                kept[name] = pruned(below, inner)
            elif schema.get(PRESERVE):
                kept[name] = inner
        return kept
    if isinstance(value, list) and "items" in schema:
        return [pruned(schema["items"], element) for element in value]
    return value


def defaulted(schema: Schema, value: Any) -> Any:
    """The object with what it does not say."""
    if isinstance(value, dict):
        made = {name: defaulted(_below(schema, name) or {}, inner) for name, inner in value.items()}
        for name, inner_schema in schema.get("properties", {}).items():
            if name not in made and "default" in inner_schema:
                made[name] = copy.deepcopy(inner_schema["default"])
        return made
    if isinstance(value, list):
        return [defaulted(schema.get("items", {}), element) for element in value]
    return value


def admitted(definition: Mapping[str, Any], version: str, body: Mapping[str, Any]) -> Any:
    """The object as a server with this definition keeps it; ``ValueError`` where it refuses it."""
    served = next(
        candidate for candidate in definition["spec"]["versions"] if candidate["name"] == version
    )
    schema = served["schema"]["openAPIV3Schema"]
    rest = {name: inner for name, inner in body.items() if name != "metadata"}
    kept = defaulted(schema, pruned(schema, rest))
    wrong = list(problems(schema, {**kept, "metadata": {}}))
    if wrong:
        raise ValueError("; ".join(wrong))
    return {**kept, "metadata": body.get("metadata", {})}


def _below(schema: Schema, name: str) -> Schema | None:
    inner = schema.get("properties", {}).get(name)
    more = schema.get("additionalProperties")
    if inner is None and isinstance(more, Mapping):
        return more
    return inner if isinstance(inner, Mapping) else None
