"""Names that nobody should choose, of groups, pods and containers: every face can be read."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
from prometheus_client import parser
from rich import console

from koordlet.cli import top_screen
from koordlet.model import decision, pod, qos
from koordlet.report import console as page
from koordlet.report import metrics, node_json, plan_json, view
from koordlet.rpc import feed
from koordlet.rpc.gen import feed_pb2
from tests.kit import nameless, recorders, views


def named(name: str) -> view.ReportView:
    """A node whose only workload, its container, a stranger and a condition are called so."""
    workload = dataclasses.replace(
        views.workload(name),
        namespace=name,
        group=f"shop/{name}",
        problems=(f"label {name}: no",),
        containers=(pod.Container(name=name, id=name, group=f"shop/{name}/{name}"),),
    )
    stranger = dataclasses.replace(
        views.workload(name, qos.Qos.BE), uid="other", source="cgroups", group=f"far/{name}"
    )
    condition = decision.Condition(
        type="MalformedPod", status=True, reason="Test", message=name, subject=workload.key
    )
    base = views.view((workload,), made=views.made_plan(conditions=(condition,)), ready=True)
    snapshot = dataclasses.replace(base.snapshot, unmanaged=(stranger,))
    return dataclasses.replace(base, snapshot=snapshot)


@pytest.mark.parametrize("name", [*nameless.NAMES, nameless.REFUSED], ids=range(18))
def test_every_face(name: str) -> None:
    """Documents, the page's events, metrics, the feed and the screen, each as it is read."""
    now = named(name)
    document = node_json.document(now, "1")
    key = f"{name}/{name}"
    for body in (document, plan_json.render(now.plan), node_json.pod(now, key)):
        assert body is not None
        assert json.dumps(name)[1:-1] in json.dumps(body, default=str)
    assert page.event(now, "1", recorders.recorder()).decode("ascii").endswith("\n\n")

    text = metrics.render(now, "1", {}, metrics.TEXT).decode()
    samples = {family.name for family in parser.text_string_to_metric_families(text)}
    assert "koordlet_workload_cpu_cores" in samples

    node_feed = feed.Feed("1")
    node_feed.publish(now)
    assert feed_pb2.Node.FromString(node_feed.node()).summary.name == "n1"

    out = io.StringIO()
    show = top_screen.Show(source="test")
    loaded = json.loads(json.dumps(document, default=str))
    console.Console(file=out, width=80, force_terminal=False).print(top_screen.screen(loaded, show))
    drawn = out.getvalue()
    drawn.encode()
    assert not {letter for letter in drawn if ord(letter) < 32 or ord(letter) == 127} - {"\n"}
