"""``koordlet config`` prints what holds and where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet import cli
from koordlet.cli import config as command
from koordlet.config import layers, loader, places, plain, schema, sourced

BODY = """\
apiVersion: koordlet.io/v1
kind: Config
mode: observe
node: {annotations: {node.koordinator.sh/reservation: '{"reservedCPUs":"0"}'}}
policies:
  shared_pools: {mode: off}
workloads:
- {name: web, qos: LS, match: {unit: nginx.service}}
- {name: two, qos: BE, requests: {cpu: 1}, match: {cgroup: a/b}}
"""

LABELS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.text(st.characters(codec="utf-8"), max_size=12),
    max_size=3,
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables of whoever runs the tests."""
    for name in ("KOORDLET_CONFIG", "KOORDLET_MODE", "KOORDLET_ROOT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of a configuration file."""
    file = tmp_path / "config.yaml"
    file.write_text(BODY)
    return str(file)


def test_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has version, config and the origin of each value by its path."""
    assert cli.main(["config", "--config", path, "-o", "json"]) == 0

    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (next(iter(document)), document["version"]) == ("version", "v1")
    assert {"version", "config", "origins"} <= set(document)
    assert (
        document["config"]["mode"],
        document["config"]["policies"]["shared_pools"]["mode"],
    ) == ("observe", "off")
    assert document["origins"]["state.handoverSeconds"] == "built-in"
    assert f"{path}:3" == document["origins"]["mode"]
    assert f"{path}:8" == document["origins"]["workloads[0].qos"]


def test_table(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has one line for each value with its origin, variables among them."""
    monkeypatch.setenv("KOORDLET_STATE__HANDOVER_SECONDS", "7")

    assert cli.main(["config", "--config", path]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["KEY", "VALUE", "ORIGIN"]
    assert ["mode", "observe", f"{path}:3"] in lines
    assert ["state.handoverSeconds", "7", "KOORDLET_STATE__HANDOVER_SECONDS"] in lines
    assert ["policies.shared_pools.mode", '"off"', f"{path}:6"] in lines


def test_yaml(path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The YAML is a configuration file that says the same, with the origins as comments."""
    assert cli.main(["config", "--config", path, "-o", "yaml"]) == 0

    text = capsys.readouterr().out
    again = tmp_path / "again.yaml"
    again.write_text(text)
    assert loader.load(path, {}, {}).config == loader.load(str(again), {}, {}).config
    assert f"mode: observe  # {path}:3" in text


@given(LABELS)
def test_yaml_round_trip(labels: dict[str, str]) -> None:
    """Whatever text a value has, the printed YAML is read back as the same."""
    data = {"node": {"labels": labels}}
    config = cast("schema.Config", schema.Config.model_validate(data).record())
    effective = sourced.Effective(config, _everywhere(config))

    text = "\n".join(command.yaml_lines(effective))

    assert effective.config == loader.from_text(text, "f", {}, {}).config


def _everywhere(config: schema.Config) -> dict[str, str]:
    return {places.dotted(loc): "f:1" for loc, _ in layers.leaves(plain.document(config))}


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON schema is printed without reading any file."""
    assert cli.main(["config", "--schema", "--config", "/does/not/exist"]) == 0

    assert schema.json_schema() == json.loads(capsys.readouterr().out)


def test_bad_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad file is exit code 2, with the culprit and the fix, and nothing on stdout."""
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: koordlet.io/v1\nkind: Config\nmode: enfroce\n")

    assert cli.main(["config", "--config", str(path), "-o", "json"]) == 2

    out, err = capsys.readouterr()
    error = json.loads(err)["error"]
    assert ("", f"{path}:3:7: mode", 'did you mean "enforce"?') == (
        out,
        error["culprit"],
        error["fix"],
    )


def test_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings are on stderr, away from what a program reads; JSON has them inside."""
    path = tmp_path / "empty.yaml"
    path.touch()

    cli.main(["config", "--config", str(path), "-o", "yaml"])
    out, err = capsys.readouterr()
    cli.main(["config", "--config", str(path), "-o", "json"])
    document = json.loads(capsys.readouterr().out)

    assert ("empty" in err, "empty:" in out) == (True, False)
    assert len(document["warnings"]) == 1


SLO = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data:
  resource-threshold-config: >-
    {"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": 60}}
  cpu-burst-config: '{"clusterStrategy": {"policy": "sometimes"}}'
"""


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_what_the_cluster_says_stands_beside_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """With its origin, and what of it does not count; a file that is YAML stays one."""
    (tmp_path / "slo.yaml").write_text(SLO)
    (tmp_path / "c.yaml").write_text(BODY)
    words = ["config", "--config", str(tmp_path / "c.yaml"), "--pods", str(tmp_path / "slo.yaml")]
    status = cli.main([*words, "-o", form])
    out = capsys.readouterr().out

    assert status == 0
    key = "resourceUsedThresholdWithBE.cpuSuppressThresholdPercent"
    if form == "json":
        cluster = json.loads(out)["cluster"]
        assert (cluster["values"][key], cluster["origins"][key]) == (60, "slo-controller-config")
        assert any("sometimes" in problem for problem in cluster["problems"])
        return
    [row] = [line for line in out.splitlines() if key in line]
    assert row.split()[-2:] == ["60", "slo-controller-config"]
    assert "sometimes" in out
    if form == "yaml":
        assert (
            loader.from_text(out, "again.yaml", {}, {}).config
            == loader.load(str(tmp_path / "c.yaml"), {}, {}).config
        )


def test_thresholds_are_held_against_the_kubelets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its file a late one is refused; without one it is said how to have them compared."""
    ours, kubelet = tmp_path / "ours.yaml", tmp_path / "kubelet.yaml"
    ours.write_text(
        "apiVersion: koordlet.io/v1\nkind: Config\npolicies:\n  node_pressure:\n    act: true\n"
        "    evictionHard: {memory.available: 200Mi}\n"
    )
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    kubelet.write_text(f"{head}evictionHard: {{memory.available: 200Mi}}\n")
    words = ["config", "--config", str(ours)]

    assert cli.main(words) == 0
    assert "--kubelet-config" in capsys.readouterr().err
    assert cli.main([*words, "--kubelet-config", str(kubelet)]) == 2
    error = capsys.readouterr().err
    assert f"{ours}:6" in error
    assert "memory.available<200Mi is not earlier than the kubelet's 200Mi" in error
    kubelet.write_text(f"{head}evictionHard: {{memory.available: 100Mi}}\n")
    assert cli.main([*words, "--kubelet-config", str(kubelet)]) == 0
    assert not capsys.readouterr().err


def test_the_origin_is_whole_on_a_narrow_terminal() -> None:
    """Values give way first; an origin that has no room has a line of its own."""
    rows = [
        ("policies.node_pressure.evictionPressureTransitionPeriod", "5m0s" * 9, "built-in"),
        ("mode", "observe", "/etc/koordlet/config.d/10-a-long-name-of-a-file.yaml:12"),
    ]
    wide, narrow = (command._fitted(rows, room) for room in (1000, 80))

    assert len(wide) == 3
    assert "5m0s" * 9 in wide[1]
    assert max(map(len, narrow)) <= 80
    for _, _, origin in rows:
        assert any(line.endswith(origin) for line in narrow)
    assert any("…" in line for line in narrow)


def test_one_long_key_costs_the_others_neither_value_nor_line() -> None:
    """In 80 columns; with the longest key there is."""
    rows = [("x" * 72, "null", "built-in"), ("apiVersion", "koordlet.io/v1", "built-in")]
    _, *_, last = command._fitted(rows, 80)

    assert last.split() == ["apiVersion", "koordlet.io/v1", "built-in"]
    assert len(last) <= 80
