"""``dataclass`` as the standard library has it, with methods that are made when first called.

Covers: every option that we use, fields, ``replace``, matching, pickling; the same results.
Does not cover: ``InitVar``, which nobody here needs.

The standard library compiles up to seven functions for each class, and asks each annotation three
times what it may mean: 0.68 ms, here 0.05 ms. The agent defines more than three hundred classes
before its first tick, of which it compares, hashes and prints few.

Rules:
1. Fields and slots are made here and now. The standard library makes those of a class with bases,
   without slots, or with an annotation that is no field (``ClassVar``). The docstring that it
   makes where there is none, of the signature, takes longer than the rest: it finds the name there.
2. A method stands as a deputy that, called once, puts the real one in its own place: from the
   second call on there is nothing between caller and method.
3. A class that has a method of its own among these, or a dataclass above it, or is frozen without
   slots, is the standard library's altogether.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import reprlib
import typing
from collections.abc import Callable, Mapping
from typing import Any

if typing.TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414, TID251 -- for mypy it is that
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """A dataclass of these options."""
        made = functools.partial(_made, options)
        return made if cls is None else made(cls)


_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_SET, _STATE = ("__setattr__", "__delattr__"), ("__getstate__", "__setstate__")
_OURS = {"__init__", "__repr__", "__eq__", "__hash__", *_SET, *_STATE, *_ORDER}
_UNSLOTTED = {"__dict__", "__weakref__"}
_NO_FIELD = re.compile("ClassVar|InitVar|KW_ONLY")
_NOTHING_YET = {"init": False, "repr": False, "eq": False, "order": False, "frozen": False}


def _made(options: Mapping[str, bool], plain: type) -> type:
    below = any(map(dataclasses.is_dataclass, plain.__bases__))
    unslotted = options.get("frozen") and not options.get("slots")
    if below or unslotted or not _OURS.isdisjoint(vars(plain)):
        return _standard(options, plain)
    made = (_slotted if _simple(options, plain) else _standard)({**options, **_NOTHING_YET}, plain)
    for name, method in _shared(frozenset(options.items())).items():
        setattr(made, name, method)
    if options.get("init", True):
        _depute(made, ("__init__",), _initialiser)
    compared = functools.partial(_comparisons, options)
    if options.get("eq", True):
        hashed = ("__hash__",) if options.get("frozen") else ()
        _depute(made, ("__eq__", *hashed), compared)
    if options.get("order"):
        _depute(made, _ORDER, compared)
    return made


def _standard(options: Mapping[str, bool], plain: type) -> type:
    if plain.__doc__ is None:
        plain.__doc__ = plain.__name__
    make: Any = dataclasses.dataclass(**options)  # noqa: TID251 -- here it is made into ours
    made: type = make(plain)
    return made


def _simple(options: Mapping[str, bool], plain: type) -> bool:
    """Whether rule 1 makes it here."""
    return (
        options.get("slots", False)
        and plain.__bases__ == (object,)
        and all(
            isinstance(kind, str) and not _NO_FIELD.search(kind)
            for kind in plain.__annotations__.values()
        )
    )


def _slotted(options: Mapping[str, bool], plain: type) -> type:
    """The class with fields and slots, and without a default where a slot is."""
    body = {name: part for name, part in vars(plain).items() if name not in _UNSLOTTED}
    fields: dict[str, Any] = {}
    for name, kind in plain.__annotations__.items():
        default = body.pop(name, dataclasses.MISSING)
        own = isinstance(default, dataclasses.Field)
        field: Any = default if own else dataclasses.field(default=default)
        if type(field.default).__hash__ is None:
            return _standard(options, plain)  # which says that it is shared by all
        field.name, field.type = name, kind
        field._field_type = dataclasses._FIELD  # type: ignore[attr-defined]  # noqa: SLF001 -- no other way
        if field.kw_only is dataclasses.MISSING:
            field.kw_only = options.get("kw_only", False)
        fields[name] = field
    body |= {"__slots__": tuple(fields), "__dataclass_fields__": fields}
    matched = (field.name for field in fields.values() if field.init and not field.kw_only)
    body.setdefault("__match_args__", tuple(matched))
    made = type(plain)(plain.__name__, plain.__bases__, body)
    made.__qualname__ = plain.__qualname__
    return made


@functools.cache
def _shared(chosen: frozenset[tuple[str, bool]]) -> Mapping[str, object]:
    """Parts that all classes with these options share, because they name no field."""
    options = dict(chosen)
    empty = _standard(options, type("Empty", (), {}))
    names = ["__dataclass_params__", *({"__replace__"} & vars(empty).keys())]  # since 3.13
    parts: dict[str, object] = {}
    if options.get("frozen"):
        parts = dict(zip(_SET, (_refuse_set, _refuse_delete), strict=True))
        names += _STATE
    elif options.get("eq", True):
        parts["__hash__"] = None
    if options.get("repr", True):
        parts["__repr__"] = _show
    return parts | {name: vars(empty)[name] for name in names}


def _depute(made: type, names: tuple[str, ...], make: Callable[[type], Mapping[str, Any]]) -> None:
    """Let these methods be made by whoever calls one of them first."""

    def deputy(name: str) -> Callable[..., Any]:
        def method(self: object, /, *args: object, **more: object) -> Any:
            for each, real in make(made).items():
                real.__qualname__ = f"{made.__qualname__}.{each}"
                setattr(made, each, real)
            return getattr(made, name)(self, *args, **more)

        method.__name__ = name
        return method

    for name in names:
        setattr(made, name, deputy(name))


def _initialiser(made: type) -> Mapping[str, Any]:
    """``__init__``; what is frozen is set through its slots' own descriptors."""
    frozen = vars(made).get("__setattr__") is _refuse_set
    known: dict[str, Any] = {"__name__": made.__module__, "_unsaid": _UNSAID}
    first, named, lines = ["_self"], ["*"], list[str]()
    for field in dataclasses.fields(made):
        name, value, word = field.name, field.name, field.name
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            word, value = f"{name}=_default_{name}", name if field.init else f"_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_new_{name}"] = field.default_factory
            word, value = f"{name}=_unsaid", f"_new_{name}()"
            value += f" if {name} is _unsaid else {name}" if field.init else ""
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else first).append(word)
        if frozen:
            known[f"_set_{name}"] = vars(made)[name].__set__
            lines.append(f"_set_{name}(_self, {value})")
        else:
            lines.append(f"_self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("_self.__post_init__()")
    words = first + (named if len(named) > 1 else [])
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(words)}):\n {body}\n", known)  # noqa: S102 -- names of fields
    return {"__init__": known["__init__"]}


def _comparisons(flags: Mapping[str, bool], made: type) -> Mapping[str, Any]:
    """Comparison and hash methods, which depend on the field names alone."""
    fields = dataclasses.fields(made)
    body: dict[str, Any] = {
        field.name: dataclasses.field(compare=field.compare, hash=field.hash) for field in fields
    }
    body["__annotations__"] = dict.fromkeys(body, object)
    order, frozen = flags.get("order", False), flags.get("frozen", False)
    options = {"init": False, "repr": False, "order": order, "unsafe_hash": frozen}
    twin = vars(_standard(options, type(made.__name__, (), body)))
    names = ("__eq__", *(("__hash__",) if frozen else ()), *(_ORDER if order else ()))
    return {name: twin[name] for name in names}


_UNSAID: Any = object()


@reprlib.recursive_repr()
def _show(self: Any) -> str:
    names = (field.name for field in dataclasses.fields(self) if field.repr)
    shown = (f"{name}={getattr(self, name)!r}" for name in names)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: Any, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(below: Any, name: str, what: str) -> None:
    """A class below that is no dataclass may have attributes of its own."""
    if "__dataclass_fields__" in vars(type(below)) or name in type(below).__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")
