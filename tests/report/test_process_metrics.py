"""The series are those of prometheus_client's collector: names, types, help and meaning."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable

import prometheus_client
import pytest
from prometheus_client import Metric
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import exposition
from prometheus_client.openmetrics import parser as openmetrics_parser

from koordlet.report import metrics, process_metrics
from tests.kit import views

_PARSERS: list[tuple[metrics.TextFormat, Callable[[str], Iterable[Metric]]]] = [
    (metrics.TEXT, text_parser.text_string_to_metric_families),
    (metrics.OPENMETRICS, openmetrics_parser.text_string_to_metric_families),
]


@pytest.mark.parametrize(("form", "parse"), _PARSERS, ids=["text", "openmetrics"])
def test_families_are_those_of_the_client_library(
    form: metrics.TextFormat, parse: Callable[[str], Iterable[Metric]]
) -> None:
    """Whoever scrapes it cannot tell them apart."""
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    written = (
        prometheus_client.generate_latest if form is metrics.TEXT else exposition.generate_latest
    )
    theirs = written(registry)
    ours = process_metrics.render(views.view(), form) + form.end

    described = [
        sorted(
            (one.name, one.type, one.documentation, [sample.name for sample in one.samples])
            for one in parse(body.decode())
        )
        for body in (ours, theirs)
    ]

    assert described[0] == described[1]


def test_values_are_those_of_the_client_library() -> None:
    """What does not move is equal; what moves is read between two readings of theirs."""
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    before = _values(prometheus_client.generate_latest(registry))
    ours = _values(process_metrics.render(views.view(), metrics.TEXT))
    after = _values(prometheus_client.generate_latest(registry))

    started = before["process_start_time_seconds"]
    assert ours["process_start_time_seconds"] == pytest.approx(started, rel=0, abs=0.1)
    assert ours["process_max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # Theirs are whole ticks of the clock, of user and of system time.
    tick = 2 / os.sysconf("SC_CLK_TCK")
    spent = ours["process_cpu_seconds_total"]
    assert before["process_cpu_seconds_total"] <= spent
    assert spent <= after["process_cpu_seconds_total"] + tick
    around = before["process_open_fds"], after["process_open_fds"]
    assert min(around) <= ours["process_open_fds"] <= max(around)
    assert 0 < ours["process_resident_memory_bytes"] <= ours["process_virtual_memory_bytes"]


def test_neither_tls_nor_a_server_is_loaded_for_them() -> None:
    """That is why they are written here."""
    code = (
        "import sys\n"
        "from koordlet import late_import\n"
        "late_import.install()\n"
        "from koordlet.report import process_metrics\n"
        "print([name for name in ('_ssl', 'http.server', 'email') if name in sys.modules])"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"


def _values(body: bytes) -> dict[str, float]:
    families = text_parser.text_string_to_metric_families(body.decode())
    return {sample.name: sample.value for family in families for sample in family.samples}
