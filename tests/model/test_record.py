"""A dataclass whose methods are made late is a dataclass in all that can be seen."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from koordlet.model import record

_FROZEN = {"frozen": True, "slots": True}
_SLOTS = {"slots": True}
_EQUAL = [
    _FROZEN,
    {**_FROZEN, "kw_only": True},
    {**_FROZEN, "order": True},
    {**_FROZEN, "eq": False},
    {**_FROZEN, "repr": False},
    {"frozen": True},
    _SLOTS,
    {**_SLOTS, "kw_only": True, "order": True},
    {**_SLOTS, "eq": False},
    {},
]


def _plain() -> type:
    class Plain:
        """Every kind of field."""

        KIND: ClassVar[str] = "plain"
        name: str
        count: int = 3
        words: tuple[str, ...] = dataclasses.field(default_factory=lambda: ("a",))
        hidden: int = dataclasses.field(default=1, repr=False, compare=False)
        late: int = dataclasses.field(default=7, init=False)
        also: list[int] = dataclasses.field(default_factory=list, init=False, hash=False)
        only: str = dataclasses.field(default="x", kw_only=True)

    return Plain


def _usual() -> type:
    class Usual:
        """Every kind of field, and nothing that is none: made without the standard library."""

        KIND = "usual"
        name: str
        count: int = 3
        words: tuple[str, ...] = dataclasses.field(default_factory=lambda: ("a",))
        hidden: int = dataclasses.field(default=1, repr=False, compare=False)
        late: int = dataclasses.field(default=7, init=False)
        also: list[int] = dataclasses.field(default_factory=list, init=False, hash=False)
        only: str = dataclasses.field(default="x", kw_only=True)

    return Usual


def _both(options: dict[str, bool], plain: Callable[[], type] = _plain) -> tuple[Any, Any]:
    return record.dataclass(**options)(plain()), dataclasses.dataclass(**options)(plain())


def _answer(ask: Callable[[], object]) -> object:
    """What comes of it; of a failure its type and its words."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 -- whichever the standard library raises
        return type(error), str(error)


_QUESTIONS: dict[str, Callable[[Any], object]] = {
    "shown": lambda kind: repr(kind(name="n")).partition(" at 0x")[0],
    "given": lambda kind: dataclasses.asdict(kind("n", 4, (), 5, only="y")),
    "given by name": lambda kind: dataclasses.asdict(kind(name="n", words=(), hidden=5, only="y")),
    "late": lambda kind: (kind(name="n").late, kind(name="n").also, kind.KIND),
    "own list": lambda kind: kind(name="n").also is kind(name="n").also,
    "missing": lambda kind: kind(),
    "unknown": lambda kind: kind(name="n", colour="red"),
    "not asked": lambda kind: kind(name="n", late=8),
    "too many": lambda kind: kind("n", 1, (), 2, "y"),
    "equal": lambda kind: kind(name="n") == kind(name="n"),
    "beside what is not compared": lambda kind: kind(name="n") == kind(name="n", hidden=2),
    "unequal": lambda kind: kind(name="n") != kind(name="m"),
    "of another kind": lambda kind: kind(name="n") == 3,
    "in a set": lambda kind: len({kind(name="n"), kind(name="n"), kind(name="m")}),
    "less": lambda kind: kind(name="a") < kind(name="b"),
    "not less": lambda kind: kind(name="a") >= kind(name="b"),
    "ordered beside others": lambda kind: kind(name="a") < 3,
    "set": lambda kind: setattr(kind(name="n"), "name", "m"),
    "deleted": lambda kind: delattr(kind(name="n"), "name"),
    "replaced": lambda kind: dataclasses.asdict(dataclasses.replace(kind(name="n"), count=9)),
    "copied": lambda kind: dataclasses.asdict(copy.deepcopy(kind(name="n"))),
    "as a dict": lambda kind: dataclasses.asdict(kind(name="n")),
    "fields": lambda kind: [
        (field.name, field.type, field.kw_only) for field in dataclasses.fields(kind)
    ],
    "matched": lambda kind: kind.__match_args__,
    "options": lambda kind: repr(kind.__dataclass_params__),
    "slots": lambda kind: getattr(kind, "__slots__", None),
    "hash": lambda kind: kind.__hash__ is None,
    "document": lambda kind: kind.__doc__,
    "name": lambda kind: (kind.__name__, kind.__qualname__, kind.__module__),
    "attributes": lambda kind: set(vars(kind)) - {"__weakref__"},
}


@pytest.mark.parametrize("options", _EQUAL, ids=str)
@pytest.mark.parametrize("plain", [_plain, _usual])
@pytest.mark.parametrize("question", _QUESTIONS)
def test_it_answers_as_the_standard_library_does(
    options: dict[str, bool], plain: Callable[[], type], question: str
) -> None:
    """Made, shown, compared, hashed, ordered, changed, copied: the same answer or error."""
    ours, theirs = _both(options, plain)
    ask = _QUESTIONS[question]

    first, again = _answer(lambda: ask(ours)), _answer(lambda: ask(ours))

    assert _answer(lambda: ask(theirs)) == first == again


@record.dataclass(frozen=True, slots=True)
class Point:
    """For pickling, which wants a name in a module."""

    x: int
    y: int = 2


def test_what_is_frozen_goes_through_a_pickle() -> None:
    """Slots are set past the refusal."""
    assert Point(1) == pickle.loads(pickle.dumps(Point(1)))  # noqa: S301 -- our own


def test_after_the_first_call_nothing_stands_between() -> None:
    """The deputy is gone, and the method takes the fields by name."""

    @record.dataclass(frozen=True, slots=True)
    class One:
        """One."""

        x: int
        y: int = 2

    deputy = One.__init__
    assert One(1) == One(1, 2)

    assert One.__init__ is not deputy
    assert list(inspect.signature(One.__init__).parameters) == ["_self", "x", "y"]


def test_who_kept_the_deputy_is_served() -> None:
    """A method that was taken before the first call works at any time after it."""

    @record.dataclass(frozen=True, slots=True, order=True)
    class One:
        """One."""

        x: int

    equal, less = One.__eq__, One.__lt__
    assert One(1) < One(2)

    assert [equal(One(1), One(1)), less(One(1), One(2)), equal(One(1), 1)] == [
        True,
        True,
        NotImplemented,
    ]


def test_it_ends_with_its_own_post_init() -> None:
    """All fields are set by then."""

    @record.dataclass(frozen=True, slots=True)
    class One:
        """One."""

        x: int

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("negative")

    assert One(1).x == 1
    with pytest.raises(ValueError, match="negative"):
        One(-1)


def test_what_is_no_field_cannot_be_set_either() -> None:
    """A frozen class has no room for more."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).colour = "red"  # type: ignore[attr-defined] # that is what is tried


def test_own_methods_stay() -> None:
    """A class that says itself how it is shown or compared is shown and compared so."""

    @record.dataclass(frozen=True, slots=True)
    class One:
        """One."""

        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "one"

    assert (repr(One(1)), hash(One(1)), One(1) == One(2)) == ("one", 5, True)


def test_one_may_stand_below_another() -> None:
    """Fields and refusals are inherited, from ours and into ours."""

    @record.dataclass(frozen=True, slots=True)
    class Above:
        """Above."""

        x: int

    @record.dataclass(frozen=True, slots=True)
    class Below(Above):
        """Below."""

        y: int = 2

    @dataclasses.dataclass(frozen=True, slots=True)
    class Theirs(Above):
        """Below, of the standard library."""

        y: int = 2

    assert Below(1) == Below(1, 2)
    assert len({Below(1), Below(1, 2), Theirs(1)}) == 2
    assert "x=1, y=2" in repr(Below(1))
    for point in (Below(1), Theirs(1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            point.x = 3  # type: ignore[misc] # that is what is tried


def test_who_is_below_and_no_dataclass_has_attributes_of_its_own() -> None:
    """Only fields are frozen there, as in the standard library."""

    class Below(Point):
        """Below."""

    point = Below(1)
    point.colour = "red"  # type: ignore[attr-defined] # it has a dict

    assert point.colour == "red"  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 3  # type: ignore[misc] # that is what is tried
    del point.colour  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x


def test_what_is_shown_within_itself_ends() -> None:
    """A record that holds itself is shown once."""

    @record.dataclass(slots=True)
    class Ring:
        """A ring."""

        inner: list[Any]

    ring = Ring([])
    ring.inner.append(ring)

    assert repr(ring).endswith("Ring(inner=[...])")


def test_a_default_that_all_would_share_is_refused_at_once() -> None:
    """As the standard library refuses it, with its words."""

    class Shared:
        """A list for everybody."""

        words: list[str] = []  # noqa: RUF012 -- that is what is tried

    with pytest.raises(ValueError, match="mutable default <class 'list'> for field words"):
        record.dataclass(frozen=True, slots=True)(Shared)


def test_wrong_options_are_refused_at_once() -> None:
    """What the standard library refuses is refused where the class is defined."""
    with pytest.raises(ValueError, match="eq must be true if order is true"):
        record.dataclass(frozen=True, slots=True, eq=False, order=True)(_plain())
