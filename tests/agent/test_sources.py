"""A machine is standalone until something of a cluster is seen on it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet import cli
from koordlet.agent import sources
from koordlet.config import schema
from koordlet.host.fs import live_host
from koordlet.host.recording import directory
from koordlet.model import observed, snapshot
from tests.kit import deadline, observing
from tests.kit.apiserver import pki
from tests.kit.kubelet import server


def config(**sections: Any) -> schema.Config:
    """With these sections."""
    return schema.Config.model_validate(sections)


@pytest.mark.parametrize(
    ("sections", "runs", "wants"),
    [
        ({}, False, False),
        ({"kubelet": {"mode": "on"}}, True, False),
        ({"kubelet": {"address": "127.0.0.1:1"}}, True, False),
        ({"kubelet": {"mode": "off", "address": "127.0.0.1:1"}}, False, False),
        ({"kube": {"kubeconfig": "/etc/kubeconfig"}}, False, True),
        ({"kube": {"mode": True}}, False, True),
    ],
)
def test_what_is_asked(sections: dict[str, Any], runs: object, wants: object) -> None:
    """What somebody wrote down counts; why is said."""
    sections.setdefault("kubelet", {}).setdefault("directory", "/nowhere")
    choice = sources.choose(config(**sections), live_host.LiveHost(), {})

    assert (runs, wants) == (choice.kubelet, choice.kube)
    assert (not (runs or wants)) is choice.standalone
    assert len(choice.why) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--config", "FILE"],
        ["check", "--config", "FILE"],
        ["run", "--observe", "--config", "FILE", "--state-dir", "STATE"],
        ["scheduler", "--kubeconfig", "/nowhere/config", "--state-dir", "STATE"],
        ["get", "reservations", "--kubeconfig", "/nowhere/config"],
        ["reserve", "r", "--cpus", "1", "--owner", "a=b", "--kubeconfig", "/nowhere/config"],
    ],
)
def test_a_kubeconfig_that_is_not_there(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command ends at once with one error, 2 as for any mistake in a configuration."""
    (tmp_path / "c.yaml").write_text(
        "apiVersion: koordlet.io/v1\nkind: Config\nkube: {kubeconfig: /nowhere/config}\n"
    )
    places = {"FILE": str(tmp_path / "c.yaml"), "STATE": str(tmp_path / "state")}

    assert cli.main([places.get(word, word) for word in words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(
        "koordlet: /nowhere/config: no usable credentials: there is no such"
    )
    assert not [line for line in lines if "source_missing" in line or "source.failed" in line]


def test_what_was_not_heard() -> None:
    """One line for each reason; what is well says nothing."""
    gathered = observed.Observed(
        sources=(
            snapshot.Source(name="a", ok=False, problem="Connection refused"),
            snapshot.Source(name="b", ok=True),
            snapshot.Source(name="c", ok=False, problem="Connection refused"),
        )
    )

    assert sources.unheard(gathered) == ["not known: a, c: Connection refused"]
    assert sources.unheard(None) == []


def test_a_command_tells_what_was_left_out_of_answers() -> None:
    """No agent logs it where a command asks by itself."""
    gathered = observed.Observed(problems=("a.yaml: default/web: no match; it is ignored",))

    assert sources.unheard(gathered) == list(gathered.problems)


def test_a_kubelet_is_seen_by_its_checkpoint(tmp_path: Path) -> None:
    """Every kubelet writes it."""
    (tmp_path / "cpu_manager_state").write_text("{}")
    settings = config(kubelet={"directory": str(tmp_path)})

    assert sources.choose(settings, live_host.LiveHost(), {}).kubelet


def test_a_recorded_machine_is_never_asked(tmp_path: Path) -> None:
    """Whatever the configuration says."""
    settings = config(kubelet={"mode": "on"}, kube={"mode": "on"})
    host = directory.DirHost(str(tmp_path))

    assert sources.choose(settings, host, {}).standalone
    assert sources.gatherer(settings, host) is None
    assert sources.once(settings, host) is None


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A kubelet as a process of its own, and the section that finds it."""
    authority = pki.Authority(tmp_path)
    with asked(tmp_path, *authority.sign("kubelet")) as section:
        yield {**section, "caFile": str(authority.certificate)}


@contextmanager
def asked(tmp_path: Path, certificate: Path, key: Path) -> Iterator[dict[str, Any]]:
    """A kubelet with this certificate, and the section without an authority."""
    folder = tmp_path / "kubelet"
    shutil.copytree(server.FIXTURES, folder)
    token = tmp_path / "token"
    token.write_text(server.TOKEN)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.kit.kubelet"),
            *("--cert", str(certificate), "--key", str(key), "--folder", str(folder)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        yield {
            "address": f"127.0.0.1:{port}",
            "tokenFile": str(token),
            "directory": str(folder),
            "intervalSeconds": 1,
        }
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def written(where: Path, **sections: Any) -> Path:
    """A configuration file."""
    head = {"apiVersion": "koordlet.io/v1", "kind": "Config"}
    where.write_text(yaml.safe_dump(head | sections))
    return where


def checked(config: Path) -> dict[str, Any]:
    """What ``koordlet check`` says."""
    ran = subprocess.run(
        [sys.executable, "-m", "koordlet", "check", "-o", "json", "--config", str(config)],
        capture_output=True,
        text=True,
        check=True,
    )
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_a_certificate_of_its_own_needs_no_setting(tmp_path: Path) -> None:
    """A kubelet that signed for itself in its directory is believed, for the name of the node."""
    authority = pki.Authority(tmp_path, "node-1-ca")
    certificate, key = authority.sign_for("node-1", "DNS:node-1")
    with asked(tmp_path, certificate, key) as section:
        own = Path(section["directory"]) / "pki" / "kubelet.crt"
        own.parent.mkdir()
        own.write_bytes(certificate.read_bytes() + authority.certificate.read_bytes())
        documents = {
            name: checked(written(tmp_path / f"{name}.yaml", kubelet=section, node={"name": name}))
            for name in ("node-1", "node-2")
        }

    problems = {
        name: [source["problem"] for source in document["sources"] if source["name"] == "kubelet"]
        for name, document in documents.items()
    }
    assert problems["node-1"] == [""]
    (why,) = problems["node-2"]
    assert "kubelet.serverName" in why
    assert "node-2" in why


def test_check_says_what_each_source_says(tmp_path: Path, kubelet: dict[str, Any]) -> None:
    """Over TLS, from another process; and what is wrong with a token that is none."""
    well = checked(written(tmp_path / "well.yaml", kubelet=kubelet))
    Path(kubelet["tokenFile"]).write_text("expired")
    ill = checked(written(tmp_path / "ill.yaml", kubelet=kubelet))

    assert not well["standalone"]
    assert [source["ok"] for source in well["sources"]] == [True] * 7
    assert "kube-system/etcd-n1" in {workload["workload"] for workload in well["workloads"]}
    problems = {source["name"]: source["problem"] for source in ill["sources"]}
    assert "returned 401" in problems["kubelet"]


def test_thresholds_are_held_against_those_of_the_kubelet(
    tmp_path: Path, kubelet: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whom nobody gave a file: its own word is asked for, and the late one is named with both."""
    pressure = {"act": True, "evictionHard": {"memory.available": "100Mi", "pid.available": "1%"}}
    # An agent that runs here would be asked instead.
    config = written(
        tmp_path / "act.yaml",
        kubelet=kubelet,
        policies={"node_pressure": pressure},
        report={"http": {"enabled": False}},
    )

    assert cli.main(["explain", "eviction", "--config", str(config)]) == 0
    output = capsys.readouterr().out
    late = "memory.available<100Mi is not earlier than the kubelet's 100Mi"
    assert "conditions: EvictionThresholdLate" in output
    assert output.count(late) == 2, "with its signal, and in the condition"
    assert "pid.available<" not in output


def test_run_follows_the_kubelet(tmp_path: Path, kubelet: dict[str, Any]) -> None:
    """Pods come with the first pass, go when the kubelet says so, and stay when it does not."""
    config = written(
        tmp_path / "config.yaml",
        kubelet=kubelet,
        report={"http": {"address": "127.0.0.1:0"}, "grpc": {"enabled": False}},
        log={"format": "json"},
    )
    pods = Path(kubelet["directory"]) / "pods.json"
    with observing.running(tmp_path, config) as node:

        def names() -> set[str]:
            return {workload["name"] for workload in node()["workloads"]}

        assert {"web-1", "db-0", "job-0", "etcd-n1", "pinned-0"} <= names()
        pods.write_text('{"kind":"PodList","items":[')
        deadline.until(
            lambda: not all(source["ok"] for source in node()["sources"]), "the kubelet has failed"
        )
        assert "db-0" in names()
        pods.write_text('{"kind":"PodList","items":[]}')
        deadline.until(lambda: "db-0" not in names(), "the pods are gone")
    assert "source.failed" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("mode", "alone", "there", "expected"),
    [
        ("auto", False, True, True),
        ("auto", False, False, False),
        ("auto", True, True, False),
        ("on", True, False, True),
        ("off", False, True, False),
    ],
)
def test_the_container_runtime(
    tmp_path: Path, mode: str, *, alone: bool, there: bool, expected: bool
) -> None:
    """It is connected to in a cluster where its socket is, else where somebody said so."""
    if there:
        socket = tmp_path / "var/run/nri/nri.sock"
        socket.parent.mkdir(parents=True)
        socket.touch()
    section = config(nri={"mode": mode}).nri

    host = directory.DirHost(str(tmp_path))
    assert expected is sources.wants_runtime(section, host, alone=alone)
