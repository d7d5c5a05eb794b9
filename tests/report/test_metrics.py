"""The series, read back by the parsers of prometheus_client."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from koordlet.model import decision, pod, qos
from koordlet.report import families, metrics, usage_families, view
from tests.kit import views

FORMS = [metrics.TEXT, metrics.OPENMETRICS]

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(
    now: view.ReportView,
    form: metrics.TextFormat = metrics.TEXT,
    events: metrics.Events | None = None,
) -> Series:
    """Every sample, by name and labels. Two of the same name fail."""
    body = metrics.render(now, "1.2.3", events or {}, form) + form.end
    return parsed(body, form)


def parsed(body: bytes, form: metrics.TextFormat) -> Series:
    """The samples of a page."""
    parse = (
        text_parser.text_string_to_metric_families
        if form is metrics.TEXT
        else openmetrics_parser.text_string_to_metric_families
    )
    series: Series = {}
    for family in parse(body.decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in series, key
            series[key] = float(sample.value)
    return series


def value(series: Series, name: str, /, **labels: str) -> float | None:
    """One sample."""
    return series.get((name, tuple(sorted(labels.items()))))


@pytest.mark.parametrize("form", FORMS)
def test_values(form: metrics.TextFormat) -> None:
    """The series say what the view says, in both formats."""
    series = scraped(views.view(), form, {("http", "requests"): 3})

    assert value(series, "koordlet_build_info", version="1.2.3") == 1
    assert value(series, "koordlet_ticks_total") == 42
    assert value(series, "koordlet_writes_total") == 7
    assert value(series, "koordlet_policy_failures_total", policy="shared_pools") == 2
    assert value(series, "koordlet_policy_failures_total", policy="reserved_cpus") == 0
    assert value(series, "koordlet_source_age_seconds", source="configuration") == 0.5
    assert value(series, "koordlet_unsupported", feature="resctrl") == 1
    assert value(series, "koordlet_condition", type="PoolTooSmall", subject="node") == 0
    assert value(series, "koordlet_reserved_cpus") == 2
    assert value(series, "koordlet_shared_pools_cpus", kind="LS", numa_node="1") == 3
    assert value(series, "koordlet_cpuset_share_pool_cpu_cores", node="n1") == 5
    assert value(series, "koordlet_cpuset_be_share_pool_cpu_cores", node="n1") == 3
    assert value(series, "koordlet_surface_events_total", surface="http", event="requests") == 3


def test_the_configuration_in_force_is_known_by_its_hash() -> None:
    """As ``sha256sum`` gives it for the file; without a file there is none."""
    known, none = (scraped(views.view(config=text)) for text in ("a: \udcff\n", None))
    [labels] = (labels for name, labels in known if name == "koordlet_config_info")

    assert labels == (("sha256", hashlib.sha256(b"a: \xff\n").hexdigest()),)
    assert "koordlet_config_info" not in {name for name, _ in none}


def test_how_late_ticks_are_by_quantile() -> None:
    """The lateness of the newest ticks, and what they took, have their quantiles."""
    counted = view.AgentCounters(lateness={"0.99": 0.02}, durations={"0.5": 0.004})
    series = scraped(views.view(counters=counted))

    assert value(series, "koordlet_tick_lateness_quantile_seconds", quantile="0.99") == 0.02
    assert value(series, "koordlet_tick_duration_quantile_seconds", quantile="0.5") == 0.004


@pytest.mark.parametrize("form", FORMS)
def test_both_parsers_take_everything(form: metrics.TextFormat) -> None:
    """The whole page, with the agent's own series, is what the format's own parser accepts."""
    body = metrics.render(views.view(), "1", {}, form)
    body += metrics.ProcessMetrics().render(form) + form.end

    names = {name for name, _ in parsed(body, form)}

    assert {"process_resident_memory_bytes", "koordlet_ready"} <= names


def test_types_are_declared() -> None:
    """Counters are counters and gauges gauges to the scraper."""
    body = metrics.render(views.view(), "1", {}, metrics.OPENMETRICS) + metrics.OPENMETRICS.end
    parse: Callable[[str], Iterable[Metric]] = openmetrics_parser.text_string_to_metric_families
    types = {family.name: family.type for family in parse(body.decode())}

    assert {family.name: family.type for family in metrics.table()} == types


def test_unknown_has_no_sample() -> None:
    """A workload whose use is not known yet has no series: zero would be a lie."""
    series = scraped(views.view())

    labels = {"namespace": "default", "name": "web", "qos": "LS"}
    assert value(series, "koordlet_workload_cpu_cores", **labels) == 1.5
    assert not any("batch" in dict(labels).values() for _, labels in series)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_has_no_sample(number: float) -> None:
    """What is no number is not shown as one."""
    series = scraped(views.view(usage={"default/web": number}))

    assert "koordlet_workload_cpu_cores" not in {name for name, _ in series}


def test_counters_are_exact() -> None:
    """A counter of many digits is not rounded."""
    series = scraped(views.view(counters=view.AgentCounters(writes=9_007_199_254_740_991)))

    assert value(series, "koordlet_writes_total") == 9_007_199_254_740_991


hostile = st.text(
    st.characters(codec=None) | st.sampled_from('\\"\n\r{}=,#\0\x85\u2028\ud800'), max_size=300
)


@given(st.lists(st.tuples(hostile, hostile), max_size=8), st.sampled_from(FORMS))
def test_hostile_names(names: list[tuple[str, str]], form: metrics.TextFormat) -> None:
    """Any name is a label, no two samples have the same, and names that can be said are kept."""
    workloads = tuple(
        pod.Pod(uid=str(n), namespace=space, name=name, qos=qos.Qos.LS, source="x")
        for n, (space, name) in enumerate(names)
    )

    series = scraped(
        views.view(workloads, usage={workload.key: 1.0 for workload in workloads}), form
    )

    shown = {
        (dict(labels)["namespace"], dict(labels)["name"])
        for name, labels in series
        if name == "koordlet_workload_cpu_cores"
    }
    wanted = {tuple(part[:256].encode("utf-8", "replace").decode() for part in n) for n in names}
    assert shown == wanted


def test_same_name_twice() -> None:
    """A pod that was made again under its name is one series."""
    twice = (views.workload("web"), views.workload("web"))

    series = scraped(views.view(twice, usage={"default/web": 1.0}))

    assert sum(name == "koordlet_workload_cpu_cores" for name, _ in series) == 1


@pytest.mark.parametrize(("first", "second"), [("\udc80", "\udc81"), ("x" * 256, "x" * 257)])
def test_names_that_are_shown_alike(first: str, second: str) -> None:
    """Names that differ only in what cannot be shown are one series, not two of one name."""
    workloads = (views.workload(first), views.workload(second))

    series = scraped(views.view(workloads, usage={workload.key: 1.0 for workload in workloads}))

    assert sum(name == "koordlet_workload_cpu_cores" for name, _ in series) == 1


def test_cut_at_the_bound() -> None:
    """Beyond its bound a family is cut, and a series says by how much."""
    most = next(family.most for family in families.FAMILIES if family.name == "koordlet_condition")
    conditions = tuple(
        decision.Condition(type="T", status=True, reason="r", subject=f"ns/{n}")
        for n in range(most + 5)
    )

    series = scraped(views.view(made=views.made_plan(conditions=conditions)))

    assert sum(name == "koordlet_condition" for name, _ in series) == most
    assert value(series, "koordlet_series_dropped", family="koordlet_condition") == 5


def test_lines_of_those_who_went_are_forgotten() -> None:
    """What is kept from scrape to scrape is bounded by what is shown, not by all who ever ran."""
    writer = metrics.MetricsWriter()
    family = families.Family(
        name="t",
        help="t",
        labels=("name",),
        bound="one",
        rows=lambda now: [((workload.name,), 1.0) for workload in now.snapshot.pods],
    )

    for turn in range(100):
        pods = tuple(views.workload(f"w{turn + number}") for number in range(50))
        writer.write((family,), views.view(pods), metrics.TEXT)

    assert writer.kept == 50


def test_later_scrape_writes_what_a_first_one_would() -> None:
    """Whatever is kept, the lines are those of the workloads and values that are there now."""
    moments = [
        (("a", "b"), 1.0),
        (("a", "b"), 2.0),
        (("b", "c"), 2.0),
        (("x" * 256, "x" * 257), 3.0),
        (("x" * 256, "x" * 257), 4.0),
        ((), 0.0),
        (("a",), math.nan),
        (("a",), 5.0),
    ]
    chosen = [
        family for family in usage_families.FAMILIES if family.name == "koordlet_workload_cpu_cores"
    ]
    writer = metrics.MetricsWriter()

    for names, cores in moments:
        pods = tuple(map(views.workload, names))
        now = views.view(pods, usage={workload.key: cores + n for n, workload in enumerate(pods)})
        first = metrics.MetricsWriter().write(chosen, now, metrics.TEXT)

        assert writer.write(chosen, now, metrics.TEXT) == first


def test_every_family_has_a_bound() -> None:
    """A family with labels says in words how many series there can be."""
    for family in metrics.table():
        assert family.name.startswith("koordlet_")
        assert family.help.endswith(".")
        single = {(), ("node",), ("sha256",), ("version",)}
        assert family.bound != "1" or family.labels in single
