"""Common base of all sections of the configuration.

Covers: frozen, strict models with camelCase keys; keys from the table of strategies; the mode of a
policy; the section of a policy whose settings are its keys; comments as descriptions; from models
to records.
Does not cover: any other section (``schema`` and the modules of single policies).

Pydantic makes one validator, of the whole configuration, when something is first validated: one of
each section by itself would take three times as long, and the agent waits for it when it starts.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic.alias_generators import to_camel, to_pascal

from koordlet.config import fieldtypes, plain
from koordlet.model import strategy_field
from koordlet.policy.framework import declaration

# Pydantic would read what each installed package says of itself, and load those that call
# themselves its plugins: 15 ms of the start, and no way for code into an agent that is root.
_plugins = types.ModuleType("pydantic.plugin._loader")
vars(_plugins).update(get_plugins=tuple)
sys.modules.setdefault(_plugins.__name__, _plugins)

PolicyMode = Literal["off", "shadow", "enforce"]
#: Annotation of a value, or of a section, that only a start reads: a change waits for a restart.
#: Every other value is in effect with the next tick (``tests/agent/test_reload.py``).
AT_START = "read only when the agent starts"
#: Annotation of a value that is accepted for the files that have it, and warned of.
DEPRECATED = "has no effect any more"


class _Unwritten:
    """A section of defaults: one for all who ask, since sections are frozen."""

    #: Pydantic asks for it at each default; to find it out takes longer than the default.
    __signature__ = inspect.Signature()

    def __init__(self, section: type[Section]) -> None:
        self._section = section
        self._made: Section | None = None

    def __call__(self) -> Section:
        if self._made is None:
            self._made = self._section.model_construct()
        return self._made


class Section(BaseModel):
    """Base of all sections: frozen, strict, no unknown keys, camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        # Our messages quote the value themselves, shortened and escaped.
        hide_input_in_errors=True,
        defer_build=True,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Build absent sections from defaults."""
        for field in cls.model_fields.values():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, Section) and field.is_required():
                field.default_factory = _Unwritten(kind)

    def values(self) -> dict[str, Any]:
        """Values by field, as in its record (``plain``)."""
        return dict(self)

    def record(self) -> plain.Section:
        """Values without model and validator."""
        kind, names = _kind(type(self))
        return kind(_recorded(getattr(self, name)) for name in names)

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        # ``state:`` with all its keys commented out reads as null.
        return {} if value is None else value


if typing.TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _FromTable(ModelMetaclass):
    """Gives a section the keys that the table of strategies has for its policy."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, Any],
        *,
        of: tuple[type, str] | None = None,
        usual: object = None,
        but: tuple[str, ...] = (),
        **more: Any,
    ) -> type:
        """``of``: strategy and policy; ``usual``: values that are defaults instead of the table's.

        Keys come after ``mode`` and ``limits``. What the section declares itself stays as it is.
        """
        if of is None:
            return super().__new__(cls, name, bases, body, **more)
        own = body.setdefault("__annotations__", {})
        below = {key: own.pop(key) for key in list(own) if key not in ("mode", "limits")}
        for key, row in strategy_field.rows(of[0]).items():
            if key in below:
                own[key] = below.pop(key)
            elif of[1] in row.file and key not in but:
                own[key], body[key] = _key_of(of[0], key, row, usual)
        own.update(below)
        return super().__new__(cls, name, bases, body, **more)


def _key_of(
    strategy: type, name: str, row: strategy_field.StrategyField, usual: object = None
) -> tuple[Any, Any]:
    """A key of the configuration file: its type, and the rest of it."""
    default = getattr(usual, name, row.default)
    if default == row.default and row.file_default is not None:
        default = row.file_default
    alias = strategy_field.key(strategy, name)
    return _type_of(row), Field(default=default, alias=alias, description=row.doc)


def _type_of(row: strategy_field.StrategyField) -> Any:
    bounds: dict[str, Any] = {}
    if row.low > -strategy_field.INT64:
        bounds["ge"] = int(row.low)
    if row.high < strategy_field.INT64 - 1:
        bounds["le"] = int(row.high)
    kinds: dict[strategy_field.Form, Any] = {
        "whole": Annotated[int, Field(**bounds)] if bounds else int,
        "number": Annotated[float, Field(strict=False, **bounds)],
        "switch": bool,
        "word": Literal[row.words],
        "amount": fieldtypes.Quantity,
        "share": fieldtypes.Part,
    }
    unsaid = row.default is None and row.file_default is None
    return kinds[row.form] | None if unsaid else kinds[row.form]


class StrategySection(Section, metaclass=_FromTable):
    """A section with the keys of a strategy."""

    if typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Keys of the table, which the type checker does not see."""


def of_policy(policy: declaration.Declared) -> type[Section]:
    """The section of a policy whose settings are its keys."""
    name, settings = to_pascal(policy.stem), type(policy.settings)
    keys: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    for key, row in strategy_field.rows(settings).items():
        if row.form == "keys":
            own = strategy_field.rows(row.of).items()
            keys |= {k: _key_of(row.of, k, r) for k, r in own if policy.stem in r.file}
        else:
            (bounds if row.bound else keys)[key] = _key_of(settings, key, row)
    words = "Upper bounds that no source can exceed." if bounds else "There are no upper bounds."
    limits: Any = create_model(f"{name}Limits", __base__=Section, __doc__=words, **bounds)
    mode = (PolicyModeField, policy.default_mode.value)
    kinds: dict[str, Any] = {"mode": mode, "limits": (limits, ...), **keys}
    section: Any = create_model(name, __base__=Section, __doc__=settings.__doc__, **kinds)
    _SETTINGS.update({section: settings, limits: settings})
    return cast("type[Section]", section)


def narrowed(
    section: type[Section], data: object, instead: tuple[tuple[str, type[Section]], ...] = ()
) -> type[Section]:
    """The section, which validates no section inside that the data leave out: those are defaults.

    ``instead``: classes of fields in place of their own.
    """
    if not isinstance(data, Mapping):
        return section
    spared = tuple(
        name
        for name, field in section.model_fields.items()
        if isinstance(field.default_factory, _Unwritten) and field.alias not in data
    )
    return _narrowed(section, spared, instead)


@functools.cache
def _narrowed(
    section: type[Section], spared: tuple[str, ...], instead: tuple[tuple[str, type[Section]], ...]
) -> type[Section]:
    kinds = dict.fromkeys(spared, Any) | dict(instead)
    fields: dict[str, Any] = {
        name: (kind, section.model_fields[name]) for name, kind in kinds.items()
    }
    narrow: Any = create_model(section.__name__, __base__=section, **fields)
    return cast("type[Section]", narrow)


#: Settings that a section is made of.
_SETTINGS: dict[type[Section], type] = {}


def described(section: type[Section]) -> type[Section]:
    """The section, where each field has the comment above it as its description.

    Only the JSON schema and the reference page ask for that: nobody else waits for the sources.
    """
    for name, field in section.model_fields.items():
        own = ""
        if isinstance(inner := _below(field.annotation), type) and issubclass(inner, Section):
            own = " ".join((described(inner).__doc__ or "").replace("``", "`").split())
        owners = [kind for kind in section.__mro__ if issubclass(kind, Section)]
        owners.append(_SETTINGS.get(section, section))
        comments = (_comments(kind.__module__).get((kind.__name__, name)) for kind in owners)
        field.description = next(filter(None, comments), field.description or own or None)
    section.model_rebuild(force=True)
    return section


def _below(annotation: Any) -> Any:
    """The section of a list; anything else as it is."""
    return next(iter(typing.get_args(annotation)), annotation)


@functools.cache
def _comments(module: str) -> Mapping[tuple[str, str], str]:
    """Comment ``#:`` above each field, by class and field."""
    source = inspect.getsource(sys.modules[module])
    lines = [line.strip() for line in source.splitlines()]
    comments: dict[tuple[str, str], str] = {}
    for section in (each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)):
        for field in section.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                above = itertools.takewhile(
                    lambda line: line.startswith("#:"), reversed(lines[: field.lineno - 1])
                )
                words = [line.removeprefix("#:").strip() for line in above]
                comments[section.name, field.target.id] = " ".join(reversed(words))
    return comments


def _recorded(value: object) -> object:
    if isinstance(value, Section):
        return value.record()
    if isinstance(value, Mapping):
        return {key: _recorded(item) for key, item in value.items()}
    return tuple(map(_recorded, value)) if isinstance(value, list | tuple) else value


@functools.cache
def _kind(section: type[Section]) -> tuple[type[plain.Section], tuple[str, ...]]:
    known = section.model_fields
    aliases = tuple(info.alias or name for name, info in known.items())
    at_start = tuple(AT_START in info.metadata for info in known.values())
    return plain.kind(section.__name__, tuple(known), aliases, at_start), tuple(known)


def _policy_mode(value: object) -> object:
    # YAML 1.1 tools rewrite a plain ``off`` as ``false``.
    return "off" if value is False else value


PolicyModeField = Annotated[
    PolicyMode,
    BeforeValidator(_policy_mode),
    Field(
        description="`off` does not run the policy, `shadow` only reports its decisions, `enforce`"
        " applies them."
    ),
]
