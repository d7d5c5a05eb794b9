"""The building blocks of the models: how a field of a custom resource is declared.

Covers: the base of all models, quantities, times, free-form parts.
Does not cover: any particular resource.

Rules:
1. A model is closed: what it does not name is an error here and is pruned by an API server.
2. ``Open`` is for what others write: an API server keeps what we do not know, so that installing
   our definition beside a later version of the peer loses nothing.
3. Optional means absent, never ``null``: structural schemas of the peers know no null either.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

#: Keyword of structural schemas: whatever stands here stays.
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"

#: ``resource.Quantity`` as the API machinery spells its pattern in generated definitions.
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_EITHER = {"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: True}


class Closed(BaseModel):
    """An object of which every field is known."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class Open(BaseModel):
    """An object that others may write more into."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True
    )


def about(text: str) -> Any:
    """A field that may be absent, with its description."""
    return Field(default=None, description=text)


Quantity = Annotated[int | str, WithJsonSchema({**_EITHER, "pattern": _QUANTITY})]
#: A percentage as an integer, or a quantity as a text.
IntOrString = Annotated[int | str, WithJsonSchema(dict(_EITHER))]
Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
#: As Go prints durations: ``5m0s``.
Duration = Annotated[str, WithJsonSchema({"type": "string"})]
Int32 = Annotated[int, WithJsonSchema({"type": "integer", "format": "int32"})]
Int64 = Annotated[int, WithJsonSchema({"type": "integer", "format": "int64"})]
Percent = Annotated[int, Field(ge=0, le=100), WithJsonSchema(
    {"type": "integer", "format": "int64", "minimum": 0, "maximum": 100}
)]  # fmt: skip
#: An object without a schema: a pod template, the extensions of somebody else.
Free = Annotated[dict[str, Any], WithJsonSchema({"type": "object", PRESERVE: True})]
ResourceList = dict[str, Quantity]
Texts = dict[str, str]
