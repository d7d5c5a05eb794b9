"""The fields of the schema as a list: what each is called, and what lies beside it.

Covers: walking the schema, the known keys of a section, the environment name of a field.
Does not cover: the values (``loader``), the reference page (``tools.docs.configuration``).
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterator, Mapping

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from koordlet.config import parcel, places, schema, sections
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One value that can be set by itself, below no list."""

    loc: places.Loc
    info: FieldInfo
    #: Only a start reads it: a reload names it in ``config.needs_restart``.
    at_start: bool = False

    @property
    def path(self) -> str:
        """Dotted path as in an error: ``state.handoverSeconds``."""
        return places.dotted(self.loc)

    @property
    def types(self) -> frozenset[type]:
        """The plain types among what it accepts."""
        return frozenset(_types(self.info.annotation))

    @property
    def scalar(self) -> bool:
        """True where one word can hold the value: only such a field has an environment name."""
        return self.types <= {str, int, bool, type(None)}

    @property
    def variable(self) -> str:
        """``KOORDLET_STATE__HANDOVER_SECONDS``."""
        return parcel.PREFIX + "__".join(_screaming(str(part)) for part in self.loc)


@functools.cache
def fields() -> tuple[Field, ...]:
    """Every field outside of lists, in the order of the schema, without apiVersion and kind."""
    return tuple(f for f in _walk(schema.Config, ()) if f.path not in ("apiVersion", "kind"))


def section_at(loc: places.Loc) -> type[BaseModel] | None:
    """The model whose keys are at a location; ``None`` for values and free-form maps."""
    section: object = schema.Config
    for part in loc:
        if isinstance(part, int):
            section = next(iter(typing.get_args(section)), None)
        elif isinstance(section, type) and issubclass(section, BaseModel):
            section = next((i.annotation for a, i in _aliased(section) if a == part), None)
        else:
            return None
    return section if isinstance(section, type) and issubclass(section, BaseModel) else None


def known_keys(loc: places.Loc) -> list[str]:
    """Keys of the section at a location."""
    section = section_at(loc)
    return [alias for alias, _ in _aliased(section)] if section is not None else []


def section_fields(section: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """The keys of one section as written in the file, with what they are."""
    return list(_aliased(section))


def _walk(model: type[BaseModel], above: places.Loc, *, at_start: bool = False) -> Iterator[Field]:
    for alias, info in _aliased(model):
        loc, inner = (*above, alias), info.annotation
        starts = at_start or sections.AT_START in info.metadata
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _walk(inner, loc, at_start=starts)
        else:
            yield Field(loc, info, starts)


def _aliased(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    return ((info.alias or name, info) for name, info in model.model_fields.items())


def _types(annotation: object) -> Iterator[type]:
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        yield str
    elif isinstance(annotation, type) and origin is None:
        yield annotation
    elif origin is typing.Annotated:
        yield from _types(typing.get_args(annotation)[0])
    elif isinstance(origin, type) and issubclass(origin, tuple | Mapping):
        yield origin
    else:
        for inner in typing.get_args(annotation):
            yield from _types(inner)


def _screaming(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).upper()
