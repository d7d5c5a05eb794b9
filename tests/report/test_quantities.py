"""The list of quantities: one row each, and every surface takes it from there."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import cast

import pytest

from koordlet.history import series, window
from koordlet.model import counters, meter
from koordlet.report import measured, metrics, node_json, quantities, scopes, usage_families
from koordlet.report.objects import metric_object
from koordlet.rpc import encode_usage
from koordlet.rpc.gen import feed_pb2
from tests.kit import busy_views, views


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Iterator[measured.Quantity]:
    """A list of one new quantity."""
    new = measured.Quantity(
        *("node", meter.SWAP_TOTAL, "swap.totalBytes"),
        (measured.Series(scopes.NODE, "swap_bytes", "Swap by kind.", ("kind",), "1"),),
        ("total",),
        field="memory_bytes",
        resource="swap",
    )
    cached = (quantities.keyed, quantities.fields, quantities.resources)
    monkeypatch.setattr(quantities, "QUANTITIES", (new,))
    for function in cached:
        function.cache_clear()
    yield new
    for function in cached:
        function.cache_clear()


class OnlyNode:
    """A history that knows one value of everything of the node."""

    node = property(lambda self: self)
    groups = numa = shares = node

    def window(
        self, subject: str, what: meter.Meter, now: float, seconds: float
    ) -> window.Window | None:
        """The same for all."""
        del what, now
        return window.Window((1024.0,), seconds) if subject == "" else None


def test_a_new_row_is_on_every_surface(row: measured.Quantity) -> None:
    """One row brings a quantity into metrics, JSON, the feed and NodeMetric."""
    assert row.what is not None
    used = counters.Usage(node=busy_views.table({row.what: 2.0**20}, [""]))
    now = views.view(used=used)

    lines, _ = metrics.MetricsWriter().write(usage_families.of(scopes.NODE), now, metrics.TEXT)
    amount = encode_usage.usage(now, []).node
    past = cast("series.History", OnlyNode())
    status = metric_object.node(now, past, metric_object.CollectPolicy())

    assert lines[2:] == ['koordlet_node_swap_bytes{kind="total"} 1048576']
    assert node_json.node_usage(now)["swap"] == {"totalBytes": 2**20}
    assert amount.memory_bytes == 2**20
    assert status["nodeUsage"] == {"resources": {"swap": "1024"}}


@pytest.mark.usefixtures("row")
def test_an_unknown_quantity_is_null_or_absent_and_never_zero() -> None:
    """What nobody has measured has no sample and no field; its key stands with null."""
    now = views.view()

    lines, _ = metrics.MetricsWriter().write(usage_families.of(scopes.NODE), now, metrics.TEXT)

    assert lines[2:] == []
    assert node_json.node_usage(now)["swap"] == {"totalBytes": None}
    assert not encode_usage.usage(now, []).node.HasField("memory_bytes")


def test_each_quantity_of_a_table_has_one_row() -> None:
    """A meter of a table is declared once, and so is each key that is no list."""
    meters = Counter((row.table, row.what) for row in quantities.QUANTITIES)
    keys = Counter(
        (row.table, row.key) for row in quantities.QUANTITIES if row.key and not row.several
    )

    assert max(meters.values()) == 1
    assert max(keys.values()) == 1


def test_tables_and_fields_are_those_of_readings_and_of_the_feed() -> None:
    """A row names a table that readings are kept in, and a field that its message has."""
    tables = {row.table for row in quantities.QUANTITIES}
    fields = {row.field for row in quantities.QUANTITIES if row.field}

    assert tables <= {field.name for field in dataclasses.fields(counters.Usage)}
    assert fields == {field.name for field in feed_pb2.Amount.DESCRIPTOR.fields}


def test_every_family_of_the_list_is_written_once() -> None:
    """No scope is left out of /metrics, and no name is there twice."""
    names = Counter(family.name for family in metrics.table())
    listed = {
        f"koordlet_{series.scope.stem}_{series.name}"
        for quantity in quantities.QUANTITIES
        for series in quantity.series
    }

    assert listed <= set(names)
    assert max(names.values()) == 1
