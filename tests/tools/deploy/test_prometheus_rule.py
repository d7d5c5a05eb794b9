"""The rules as objects for a Prometheus operator: the same rules, nothing else."""

from __future__ import annotations

import yaml

from tools.deploy import prometheus_rule


def test_up_to_date() -> None:
    """The file in the tree is the one that is made, and its groups are those of the rule files."""
    assert prometheus_rule.main(["--check"]) == 0
    objects = list(yaml.safe_load_all(prometheus_rule.PLACE.read_text()))
    for made in objects:
        name = made["metadata"]["name"].removeprefix("koordlet-")
        rules = yaml.safe_load((prometheus_rule.DEPLOY / "alerts" / f"{name}.yaml").read_text())
        assert made["spec"] == rules

    named = {made["metadata"]["name"].removeprefix("koordlet-") for made in objects}
    assert named == {path.stem for path in (prometheus_rule.DEPLOY / "alerts").glob("*.yaml")}
    assert [made["kind"] for made in objects] == ["PrometheusRule"] * len(named)
