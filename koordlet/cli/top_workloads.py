"""The workloads in ``koordlet top``: which, in which order, and the columns of their table. Pure.

Covers: sorting, filtering, what each column says, numbers as people read them.
Does not cover: drawing (``top_screen``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from koordlet.model.record import dataclass
from koordlet.report import documents

_part, _rows = documents.part, documents.rows
MOVED = ("receivedBytesPerSecond", "sentBytesPerSecond")


def used(document: documents.Document) -> Mapping[str, float]:
    """CPUs that each workload uses now, as far as it is known."""
    cores = {name_of(row): row.get("cpuCores") for row in every(document)}
    return {name: float(value) for name, value in cores.items() if isinstance(value, int | float)}


def every(document: documents.Document) -> list[documents.Document]:
    """Workloads, and cgroups that no source lists."""
    return [*_rows(document, "workloads"), *_rows(document, "unmanaged")]


def chosen(document: documents.Document, sort: str, wanted: str) -> Sequence[documents.Document]:
    """The workloads in whose name or class is what is wanted, in order; equal ones by name."""
    rows = [
        row
        for row in every(document)
        if wanted.lower() in f"{name_of(row)} {row.get('qos')}".lower()
    ]
    rows.sort(key=lambda row: (str(row.get("namespace")), str(row.get("name"))))
    column = next(column for column in COLUMNS if column.key == sort)
    if column.key != "n":
        rows.sort(key=lambda row: -rank(column.value(row)))
    return rows


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table, and the narrowest terminal that shows it."""

    #: The key that sorts by it; empty where none does.
    key: str
    head: str
    width: int
    #: What it sorts by, and how that is shown.
    value: Callable[[documents.Document], Any]
    form: Callable[[Any], str]


def name_of(document: documents.Document) -> str:
    """Namespace and name."""
    return f"{document.get('namespace')}/{document.get('name')}"


def _did(document: documents.Document) -> float | None:
    """Bytes a second to and from disks."""
    usage = _part(document, "usage")
    done = [usage.get("readBytesPerSecond"), usage.get("writtenBytesPerSecond")]
    return None if None in done else sum(map(rank, done))


def _throttled(document: documents.Document) -> object:
    """Of a workload, or of that of its containers which ran into its own limit most."""
    usage = _part(document, "usage")
    every = [usage, *_rows(usage, "containers")]
    return max((part.get("throttledRatio") for part in every), key=rank)


def moved(used: documents.Document) -> float | None:
    """Bytes a second through the network, both ways."""
    both = _part(used, "network")
    return None if None in (both.get(name) for name in MOVED) else sum(rank(both[n]) for n in MOVED)


def _stalls(document: documents.Document) -> list[object]:
    psi = _part(_part(document, "usage"), "pressure")
    return [_part(psi, resource).get("some") for resource in ("cpu", "memory", "io")]


def rank(value: object) -> float:
    """What is sorted by: of several the largest; what is unknown is the least."""
    if isinstance(value, list):
        return max(map(rank, value))
    return float(value) if isinstance(value, int | float) else -1.0


def number(value: object, digits: int) -> str:
    """A number with so many digits."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "-"


def percent(value: object) -> str:
    """A share in whole percent."""
    return f"{value:.0%}" if isinstance(value, int | float) else "-"


def _percents(values: Iterable[object]) -> str:
    return "/".join(percent(value).rstrip("%") for value in values)


def size(value: object) -> str:
    """Bytes."""
    if not isinstance(value, int | float):
        return "-"
    size, unit = float(value), "B"
    for unit in ("B", "K", "M", "G", "T"):
        if size < 1000 or unit == "T":
            break
        size /= 1024
    return f"{size:.0f}{unit}" if size >= 100 or unit == "B" else f"{size:.1f}{unit}"


COLUMNS = (
    Column("n", "workload", 0, name_of, str),
    Column("", "class", 50, lambda row: row.get("qos") or "-", str),
    Column("c", "CPU", 0, lambda row: row.get("cpuCores"), lambda cores: number(cores, 2)),
    Column("m", "memory", 0, lambda row: _part(row, "usage").get("memoryBytes"), size),
    Column("t", "thr", 40, _throttled, percent),
    Column("p", "cpu/mem/io", 60, _stalls, _percents),
    Column("i", "I/O", 70, _did, size),
    Column("w", "net", 70, lambda row: moved(_part(row, "usage")), size),
    Column("", "CPUs", 78, lambda row: row.get("cpus") or "-", str),
)
SORTS = frozenset(column.key for column in COLUMNS if column.key)
