"""The chart says what the kustomizations say, and what it has beside them holds together.

Covers: that it is up to date, each component against its overlay, pools, the switch, wrong values.
Does not cover: a cluster that takes it (``tests.cluster.test_chart``).
"""

from __future__ import annotations

import copy
import json
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.config import loader, schema
from koordlet.report import families
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import helm, views
from tests.tools.docs import test_surfaces
from tools.deploy import chart, template, values

Objects = dict[tuple[str, str], dict[str, Any]]


def objects(documents: Any, *, without: tuple[str, ...] = ()) -> Objects:
    """By kind and name, in one form: a configuration as data, no pool, no namespace of its own."""
    by_name: Objects = {}
    for document in copy.deepcopy(list(documents)):
        name = (document["kind"], document["metadata"]["name"])
        if document["kind"] in ("Namespace", "CustomResourceDefinition", *without):
            continue
        if "helm.sh/hook" in document["metadata"].get("annotations", {}):
            continue
        if document["kind"] == "ConfigMap":
            document["data"] = {k: yaml.safe_load(v) for k, v in document["data"].items()}
        if name[0] == "DaemonSet":
            for place in (
                document["spec"]["selector"]["matchLabels"],
                document["spec"]["template"]["metadata"]["labels"],
            ):
                place.pop("koordlet.io/pool", None)
        by_name[name] = document
    return by_name


def test_it_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """What lies in deploy/chart is what the manifests make now."""
    assert chart.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("component", overlays.COMPONENTS)
def test_a_component_is_what_its_overlay_is(component: str) -> None:
    """The same objects, field by field; the chart has the admission policies by its own switch."""
    key = next(key for key in chart.components() if chart.folder(key) == component)
    made = objects(helm.rendered(f"components.{key}=true"))

    assert made == objects(overlays.built(overlays.overlay_of(component)))


@pytest.mark.parametrize(
    ("folder", "settings"),
    [
        ("scheduler", ("scheduler.enabled=true",)),
        (
            "overlays/reporting/scheduler",
            (
                *("scheduler.enabled=true", "components.reporting=true"),
                "components.scraped=true",
            ),
        ),
        ("descheduler", ("descheduler.enabled=true",)),
        ("webhook", ("webhook.enabled=true",)),
        ("overlays/webhook-scraped", ("webhook.enabled=true", "components.scraped=true")),
        ("overlays/webhook-certificates", ("webhook.enabled=true", "tls.certManager=true")),
        (
            "overlays/reporting/certificates",
            ("components.reporting=true", "tls.certManager=true"),
        ),
    ],
)
def test_the_others_are_what_their_folders_are(folder: str, settings: tuple[str, ...]) -> None:
    """The scheduler, with reports and without, the descheduler, the webhook, certificates."""
    plain = objects(helm.rendered(*settings))
    wanted = objects(overlays.built(DEPLOY / folder))

    assert {name: plain.get(name) for name in wanted} == wanted


def test_everything_at_once_and_in_another_namespace() -> None:
    """Every component and program; nothing is left of the manifests' own namespace."""
    keys = [f"components.{key}=true" for key in chart.components()]
    more = ["scheduler.enabled=true", "descheduler.enabled=true", "tls.certManager=true"]
    more += [
        "webhook.enabled=true",
        "monitoring.alerts=true",
        "monitoring.dashboards=true",
        "rollout.prometheus=http://p",
    ]
    made = helm.rendered(*keys, *more, namespace="elsewhere")

    assert "koordlet-system" not in json.dumps(
        [d for d in made if not d["metadata"]["name"].startswith("koordlet-dashboard")]
    )
    names = {(d["kind"], d["metadata"]["name"]) for d in made}
    assert len(names) == len(made)
    assert {("Job", "koordlet-rollout"), ("PrometheusRule", "koordlet-alerts-koordlet")} <= names


@pytest.mark.parametrize(("pods", "kind"), [("true", "PodMonitor"), ("false", "ServiceMonitor")])
def test_each_program_has_one_monitor_of_the_kind_that_is_asked_for(pods: str, kind: str) -> None:
    """Of pods or of Services; what a monitor names is made by the same release."""
    made = helm.rendered(
        *("scheduler.enabled=true", "webhook.enabled=true", "components.reporting=true"),
        *("components.scraped=true", f"monitoring.podMonitor={pods}"),
    )
    monitors = [body for body in made if body["kind"].endswith("Monitor")]
    names = {(body["kind"], body["metadata"]["name"]) for body in made}

    assert sorted((body["kind"], body["metadata"]["name"]) for body in monitors) == [
        (kind, name) for name in ("koordlet", "koordlet-scheduler", "koordlet-webhook")
    ]
    for body in monitors:
        (point,) = body["spec"].get("endpoints") or body["spec"]["podMetricsEndpoints"]
        if token := point.get("authorization", {}).get("credentials"):
            assert ("Secret", token["name"]) in names


@pytest.mark.parametrize("site", [None, "http://wiki/koordlet"])
def test_alerts_lead_to_the_site_that_is_named(site: str | None) -> None:
    """Every one of them; by default to a name that is nobody's."""
    settings = [f"monitoring.site={site}"] if site else []
    rules = [
        rule["annotations"]["runbook_url"]
        for made in helm.rendered("monitoring.alerts=true", *settings)
        if made["kind"] == "PrometheusRule"
        for group in made["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]

    assert len(rules) > 20
    sites = {url.partition("/runbooks.html#")[0] for url in rules}
    assert sites == {site or "https://koordlet.example"}


def test_pools_share_the_nodes() -> None:
    """Each has its nodes, its configuration; the rest has the nodes of no pool."""
    made = objects(
        helm.rendered(
            "agent.config.mode=observe", "pools.configs.canary.mode=enforce", "image.tag=v7"
        )
    )
    rest, canary = (made["DaemonSet", name]["spec"]["template"]["spec"] for name in _BOTH)
    [term] = rest["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]

    assert term["matchExpressions"] == [
        {"key": "koordlet.io/pool", "operator": "NotIn", "values": ["canary"]}
    ]
    assert canary["nodeSelector"] == {**rest["nodeSelector"], "koordlet.io/pool": "canary"}
    assert "affinity" not in canary
    assert [_mode(made, name) for name in _BOTH] == ["observe", "enforce"]
    assert {box["image"] for pod in (rest, canary) for box in pod["containers"]} == {"koordlet:v7"}


_BOTH = ("koordlet", "koordlet-canary")


def _mode(made: Objects, name: str) -> str:
    """Of the configuration that the agents of a pool have."""
    text = yaml.safe_dump(made["ConfigMap", name]["data"]["config.yaml"])
    loaded = loader.from_text(text, "config.yaml", {}, {})
    assert loaded.warnings == ()
    return str(loaded.config.mode)


def test_one_value_switches_the_fleet_off() -> None:
    """Also pools that enforce by themselves; nothing but the configuration changes."""
    on = objects(helm.rendered("pools.configs.canary.mode=enforce"))
    off = objects(helm.rendered("pools.configs.canary.mode=enforce", "suspend=true"))

    assert [_mode(off, name) for name in _BOTH] == ["observe", "observe"]
    assert {name for name in on if on[name] != off[name]} == {("ConfigMap", n) for n in _BOTH}


def test_a_stage_awaits_what_its_agents_are_given() -> None:
    """The job knows each pool's file by its hash, as agents report it."""
    settings = ("rollout.prometheus=http://p", "pools.configs.canary.mode=enforce")
    made = helm.rendered(*settings, "agent.config.mode=observe")
    maps = [document for document in made if document["kind"] == "ConfigMap"]
    files = {each["metadata"]["name"]: each["data"]["config.yaml"] for each in maps}
    rest, canary = (_reported(files[name]) for name in _BOTH)
    [job] = (d["spec"]["template"]["spec"] for d in made if d["kind"] == "Job")
    args = job["containers"][0]["args"]

    assert args[3:] == [f"--pool=={rest}", f"--pool=canary={canary}"]
    for less in ("suspend=true", "rollout.prometheus="):
        assert [d for d in helm.rendered(*settings, less) if d["kind"] == "Job"] == []


def _reported(text: str) -> str:
    """What an agent says of its file."""
    [((digest,), _)] = families.koordlet_config_info(replace(views.view(), config=text))
    return digest


@pytest.mark.parametrize(
    ("setting", "culprit"),
    [
        ("agnet.enabled=true", "agnet"),
        ("components.observer=true", "observer"),
        ("scheduler.replicas=two", "/scheduler/replicas"),
        ("pools.configs.canary=enforce", "/pools/configs/canary"),
        ("rollout.seconds=0", "/rollout/seconds"),
        ("agent.config.policies.shared_pool.mode=off", "'shared_pool' not allowed"),
        ("pools.configs.canary.mod=enforce", "'mod' not allowed"),
        ("agent.config.workloads[0].qoss=LS", "'qoss' not allowed"),
        ("agent.config.mode=enfoce", "must be one of 'enforce', 'observe'"),
        ("pools.configs.canary.policies.adaptive.floorMilli=9", "got 9, want 10"),
    ],
)
def test_wrong_values_are_refused(setting: str, culprit: str) -> None:
    """A key that does not exist and a wrong type are named, before anything is installed."""
    done = helm.run("template", "koordlet", str(helm.CHART), "--set", setting)

    assert done.returncode == 1
    assert culprit in done.stderr


@pytest.mark.parametrize("config", test_surfaces.CONFIGS, ids=lambda path: str(path.stem))
def test_the_whole_configuration_reaches_the_agents_as_it_is(config: Path, tmp_path: Path) -> None:
    """Helm takes every key, with the value that a version recorded; no number is rounded."""
    text = config.read_text()

    assert _through_helm(text, tmp_path) == loader.from_text(text, str(config), {}, {}).config


def test_what_agents_take_in_yaml_1_1_passes(tmp_path: Path) -> None:
    """There a plain ``off`` is a boolean; a heading alone is null everywhere."""
    text = "node:\nworkloads:\nkubelet: {mode: on}\npolicies: {shared_pools: {mode: off}}\n"
    config = _through_helm(text, tmp_path)

    assert (config.kubelet.mode, config.policies.shared_pools.mode) == ("on", "off")


def test_a_list_of_one_cpu_and_thresholds_as_flags_pass(tmp_path: Path) -> None:
    """The list is a number in YAML; agents take both spellings of thresholds."""
    text = (
        "policies:\n  reserved_cpus: {cpus: 3}\n"
        "  node_pressure: {evictionHard: 'memory.available<100Mi'}\n"
    )
    policies = _through_helm(text, tmp_path).policies

    assert policies.reserved_cpus.cpus == "3"
    assert policies.node_pressure.eviction_hard == {"memory.available": "100Mi"}


def _through_helm(text: str, folder: Path) -> schema.Config:
    """The configuration that agents are given where this is ``agent.config``."""
    file = folder / "values.yaml"
    file.write_text("agent:\n  config:\n" + textwrap.indent(text, "    "))
    done = helm.run("template", "koordlet", str(helm.CHART), f"--values={file}")
    assert done.returncode == 0, done.stderr
    [made] = (d for d in yaml.safe_load_all(done.stdout) if d and d["kind"] == "ConfigMap")
    return loader.from_text(made["data"]["config.yaml"], "config.yaml", {}, {}).config


def test_rights_go_with_their_values() -> None:
    """A role has no more than what was asked for."""
    role = objects(helm.rendered("rbac.evict=false", "rbac.devices=false"))[
        "ClusterRole", "koordlet"
    ]
    every = {resource for rule in role["rules"] for resource in rule["resources"]}

    assert {"pods/eviction", "devices"} & every == set()
    assert "nodes/status" in every


@pytest.mark.parametrize("path", ["/var/lib/kubelet", "/var/lib/k0s/kubelet"])
def test_a_kubelet_s_directory_is_mounted_where_agents_look(path: str) -> None:
    """k0s and MicroK8s have it elsewhere: the node's path changes, and none in the container."""
    made = objects(helm.rendered(f"agent.kubeletDirectory={path}", "components.draDriver=true"))
    pod = made["DaemonSet", "koordlet"]["spec"]["template"]["spec"]
    places = {v["name"]: v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}
    mounts = {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}

    assert (places["kubelet"], places["plugins-registry"]) == (path, f"{path}/plugins_registry")
    assert (mounts["kubelet"], mounts["plugins-registry"]) == (
        "/var/lib/kubelet",
        "/var/lib/kubelet/plugins_registry",
    )


def test_a_value_stands_where_the_manifest_has_it() -> None:
    """The defaults are read from the manifests, so none can differ."""
    text = (helm.CHART / "values.yaml").read_text()
    loaded = yaml.safe_load(text)
    pod = next(d for d in overlays.built(DEPLOY / "agent") if d["kind"] == "DaemonSet")["spec"][
        "template"
    ]

    assert loaded["agent"]["resources"] == pod["spec"]["containers"][0]["resources"]
    assert loaded["agent"]["onStop"] == "handover"
    for value in values.VALUES:
        above, _, last = value.key.rpartition(".")
        assert last in (loaded[above] if above else loaded), value.key


def test_conditions_that_follow_upon_each_other_are_one() -> None:
    """And those of another condition stay apart, also behind an else."""
    same = template.lines([template.If("a", 1), template.If("a", 2), template.If("b", 3)])
    choice = {"x": template.Choice("a", 1, 2), "y": template.If("a", 3)}

    assert template.joined([*same]) == [
        *("{{- if a }}", "- 1", "- 2", "{{- end }}"),
        *("{{- if b }}", "- 3", "{{- end }}"),
    ]
    assert len(template.joined([*template.lines(choice)])) == 8


def test_a_patch_that_no_condition_can_say_is_refused() -> None:
    """What a manifest has already cannot be added once more."""
    with pytest.raises(ValueError, match="no condition can say this"):
        template.patch({"a": {}}, [{"op": "add", "path": "/a", "value": 1}], "x")


def test_links_lead_to_what_is_there() -> None:
    """Definitions, alerts and dashboards are those of deploy/, not copies."""
    for name in ("crds", "alerts", "dashboards"):
        link = helm.CHART / "files" / name
        assert Path(link.readlink()) == Path("../..", name)
        assert link.resolve() == DEPLOY / name
