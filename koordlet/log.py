"""The log: one line for each fact, on standard error.

Covers: JSON lines or a readable console, levels, UTC timestamps, saying a repeated condition once.
Does not cover: the audit log (``state``), metrics (``report``), what a command prints (``cli``).

Rules:
1. An event is named ``stem.fact``, such as ``shared_pools.applied``; what varies is in fields.
2. Nothing here raises or waits for long: a full disk, a closed pipe or one that nobody reads any
   more costs the line, never the agent. Lost lines are counted (``Sink.lost``).
3. No configuration, environment or file content is logged as a whole; fields whose name says that
   they are secret are masked.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import select
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from koordlet.model import printable
from koordlet.model.record import dataclass

# structlog.dev loads rich where it is installed, 5.6 MB and 45 ms for a console renderer that we do
# not use, and structlog._greenlets loads greenlet, 1.2 MB of libstdc++. A name that maps to None
# makes that import fail; structlog then does without.
_unwanted = {name: sys.modules.pop(name, None) for name in ("greenlet", "rich")}
sys.modules.update(dict.fromkeys(_unwanted))  # type: ignore[arg-type]
import structlog  # noqa: E402 -- see above

for _name, _module in _unwanted.items():
    del sys.modules[_name]
    if _module is not None:
        sys.modules[_name] = _module

Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]

#: Milliseconds that a write waits for its reader; those after one that waited in vain do not.
_PATIENCE = 250
#: Characters in one write: at most 4096 bytes, which a pipe that has room takes at once.
_PIECE = 1_000
#: Longer values are cut: a log line is not a dump.
MAX_VALUE = 2_000
MASK = "***"
_MAX_DEPTH = 4

_SECRET_WORDS = frozenset(
    {
        "apikey",
        "authorization",
        "cookie",
        "credential",
        "credentials",
        "passwd",
        "password",
        "secret",
        "token",
    }
)
_SECRET_PAIRS = ("private_key", "api_key", "access_key")


class WriteRoom:
    """Whether a write to a descriptor ends soon: a reader that hangs would hold us for ever."""

    def __init__(self, number: int) -> None:
        self._poll = select.poll()
        self._poll.register(number, select.POLLOUT)
        self._patience = _PATIENCE

    def is_there(self) -> bool:
        """Whether a pipe takes a page now, or soon where it took the last one."""
        room = bool(self._poll.poll(self._patience))
        self._patience = _PATIENCE if room else 0
        return room


class Sink:
    """A stream that swallows its own failures, and counts them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: Held for one line: none begins inside of another, and poll answers one thread at a time.
        self._lock = threading.RLock()
        #: Lines that could not be written.
        self.lost = 0
        #: Its end was lost: the next line begins with the newline.
        self._cut = False
        self._room: WriteRoom | None = None
        with contextlib.suppress(OSError, ValueError):  # in memory, or closed
            self._room = WriteRoom(stream.fileno())

    def write_line(self, line: str) -> None:
        """Write one line, or count it as lost."""
        with self._lock:
            self._write(line)

    def _write(self, line: str) -> None:
        text = f"\n{line}\n" if self._cut else f"{line}\n"
        start = 0
        try:
            for start in range(0, len(text), _PIECE):
                if self._room is not None and not self._room.is_there():
                    self.lost += 1
                    self._cut |= start > 0
                    return
                self._stream.write(text[start : start + _PIECE])
                self._stream.flush()
            self._cut = False
        except (OSError, ValueError) as error:
            # ValueError: the stream is closed.
            if not isinstance(error, UnicodeError) or line.isascii():
                self.lost += 1
                return
            # A terminal of another encoding, or half a character from a file name.
            self._cut |= start > 0
            self._write(line.encode("ascii", "backslashreplace").decode("ascii"))

    # structlog's loggers are called by the name of the level.
    debug = info = warning = error = critical = msg = write_line


@dataclass(slots=True)
class _Condition:
    """How often something was seen, and when it was last said."""

    count: int
    said_at: float
    seen_at: float
    next_count: int


class Repeats:
    """Says a repeated condition once, then with its count at growing intervals.

    It is said at the 1st, 10th, 100th … time, and no later than ``every`` seconds after it was last
    said while it goes on. Memory is bounded: what has not been seen for ``forget`` seconds is
    forgotten, and while ``limit`` conditions are known, all further ones are counted as one.
    """

    #: The key that all conditions share when there are too many.
    OTHER = "other"

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        every: float = 600.0,
        forget: float = 3600.0,
        limit: int = 1000,
    ) -> None:
        self._clock = clock
        self._every = every
        self._forget = forget
        self._limit = limit
        self._known: dict[Hashable, _Condition] = {}

    def count(self, key: Hashable) -> int | None:
        """Count the condition once more; the count where it is to be said now, else ``None``."""
        now = self._clock()
        condition = self._known.get(key)
        if condition is None and len(self._known) >= self._limit:
            self._drop_old(now)
            if len(self._known) >= self._limit:
                key = Repeats.OTHER
                condition = self._known.get(key)
        if condition is None or now - condition.seen_at > self._forget:
            self._known[key] = _Condition(1, now, now, 10)
            return 1
        condition.count += 1
        condition.seen_at = now
        if condition.count < condition.next_count and now - condition.said_at < self._every:
            return None
        condition.said_at = now
        while condition.next_count <= condition.count:
            condition.next_count *= 10
        return condition.count

    def over(self, key: Hashable) -> int:
        """The condition ended: how often it was seen, 0 where it was not there."""
        condition = self._known.pop(key, None)
        return condition.count if condition is not None else 0

    def say(
        self, write: Callable[..., object], event: str, key: Hashable, **fields: object
    ) -> None:
        """Log the event through ``write`` (such as ``log.warning``) when it is due."""
        times = self.count((event, key))
        if times is not None:
            write(event, **fields, times=times)

    def _drop_old(self, now: float) -> None:
        old = [key for key, known in self._known.items() if now - known.seen_at > self._forget]
        for key in old:
            del self._known[key]


def configure(
    level: Level = "info", form: Format = "auto", *, stream: TextIO | None = None
) -> Sink:
    """Set the log up for the process; may be called again after a change of configuration."""
    target = sys.stderr if stream is None else stream
    sink = Sink(target)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _utc,
            _clean,
            _render_console if _readable(form, target) else _render_json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=lambda *_: sink,
        # Not cached: a reload changes the level of loggers that exist already.
        cache_logger_on_first_use=False,
    )
    return sink


def get(**fields: object) -> structlog.typing.FilteringBoundLogger:
    """A logger whose lines carry the given fields."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**fields)
    return logger


def _readable(form: Format, stream: TextIO) -> bool:
    if form != "auto":
        return form == "console"
    try:
        return stream.isatty()
    except (OSError, ValueError):
        return False


_Event = MutableMapping[str, Any]


def _utc(_logger: object, _name: str, event: _Event) -> _Event:
    now = datetime.now(UTC)
    event["timestamp"] = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _clean(_logger: object, _name: str, event: _Event) -> _Event:
    exc_info = event.pop("exc_info", None)
    if exc_info:
        event["exception"] = _traceback(exc_info)
    for key, value in event.items():
        event[key] = MASK if _secret(key) else _plain(value)
    return event


def _traceback(exc_info: object) -> str:
    if exc_info is True:
        exc_info = sys.exc_info()
    elif isinstance(exc_info, BaseException):
        exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
    if not isinstance(exc_info, tuple) or exc_info[0] is None:
        return ""
    # The standard formatter: it prints no local variables, and they may hold anything.
    text = "".join(traceback.format_exception(*exc_info))
    return text if len(text) <= MAX_VALUE else "…" + text[-MAX_VALUE:]


def _secret(key: str) -> bool:
    lowered = key.lower()
    words = lowered.replace("-", "_").split("_")
    return any(word in _SECRET_WORDS for word in words) or any(p in lowered for p in _SECRET_PAIRS)


def _plain(value: object, depth: int = 0) -> object:
    """A value of JSON types, cut to size, with secrets in maps masked."""
    if isinstance(value, str):
        return value if len(value) <= MAX_VALUE else value[:MAX_VALUE] + "…"
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        return {str(k): MASK if _secret(str(k)) else _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < _MAX_DEPTH:
        return [_plain(item, depth + 1) for item in value]
    return _other(value)


def _other(value: object) -> object:
    # JSON has no word for infinities and NaN.
    if isinstance(value, float) and math.isfinite(value):
        return value
    try:
        return _plain(str(value))
    except Exception:  # noqa: BLE001 - a broken __str__ must not take the line with it
        return f"<{type(value).__name__}>"


def _render_json(_logger: object, _name: str, event: _Event) -> str:
    head = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    # ASCII: a line is valid whatever the encoding of the stream.
    return json.dumps({**head, **event})


def _render_console(_logger: object, _name: str, event: _Event) -> str:
    clock = str(event.pop("timestamp"))[11:23]
    level, name = str(event.pop("level")), printable.escaped(str(event.pop("event")))
    exception = event.pop("exception", None)
    fields = " ".join(f"{key}={_field(value)}" for key, value in event.items())
    line = f"{clock} {level:<7} {name:<32} {fields}".rstrip()
    if not exception:
        return line
    return "\n  ".join([line, *map(printable.escaped, str(exception).splitlines())])


def _field(value: object) -> str:
    if not isinstance(value, str):
        return printable.escaped(json.dumps(value, ensure_ascii=False))
    plain = printable.escaped(value)
    return f'"{plain}"' if plain != value or not value or " " in value else value
