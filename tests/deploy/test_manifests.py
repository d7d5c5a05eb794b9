"""What is deployed agrees with itself and with the code: manifests, units, image, examples.

Covers: deploy/, systemd/, Dockerfile, as far as they can be held against the project.
Does not cover: a cluster, a container engine; systemd (``tests.vm.test_systemd``).
"""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import koordlet
from koordlet import cli
from koordlet.config import environment, loader, places, schema
from koordlet.report import http_api
from koordlet.state import paths
from tests.kit import recorders

REPO = Path(__file__).resolve().parents[2]
DOCUMENTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((REPO / "deploy" / "daemonset.yaml").read_text())
)
NAMESPACE = "koordlet-system"
UNITS = ("koordlet.service", "koordlet-restore.service")
INSTALL = "-m pip install --no-deps --require-hashes -r"


def manifest(kind: str) -> dict[str, Any]:
    """The manifest of that kind."""
    (document,) = (document for document in DOCUMENTS if document["kind"] == kind)
    return document


def pod() -> dict[str, Any]:
    """The spec of the agent's pods."""
    spec: dict[str, Any] = manifest("DaemonSet")["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    """The agent's container."""
    (agent,) = pod()["containers"]
    return dict(agent)


def variables() -> dict[str, str]:
    """The container's environment; what the cluster fills in has a made-up value."""
    return {each["name"]: each.get("value", "node-1") for each in container()["env"]}


# Kubernetes ---------------------------------------------------------------------------------------


def test_names_that_refer_to_each_other() -> None:
    """Account, role, binding, ConfigMap and labels are those that are defined here."""
    account, role, binding = (
        manifest(k) for k in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    )
    daemonset = manifest("DaemonSet")

    assert manifest("Namespace")["metadata"]["name"] == NAMESPACE
    for each in (account, manifest("ConfigMap"), daemonset):
        assert each["metadata"]["namespace"] == NAMESPACE, each["kind"]
    assert role["metadata"]["name"] == binding["roleRef"]["name"]
    assert [("ServiceAccount", account["metadata"]["name"], NAMESPACE)] == [
        (each["kind"], each["name"], each["namespace"]) for each in binding["subjects"]
    ]
    assert account["metadata"]["name"] == pod()["serviceAccountName"]
    wanted = daemonset["spec"]["selector"]["matchLabels"].items()
    assert wanted <= daemonset["spec"]["template"]["metadata"]["labels"].items()


def test_the_token_is_asked_for() -> None:
    """The account gives no token by itself; the agent's pods say that they want one."""
    assert manifest("ServiceAccount")["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is True


def test_mounts_have_volumes() -> None:
    """Each mount is a volume, each volume is mounted, and ours are where the agent looks."""
    mounts = {each["name"]: each["mountPath"] for each in container()["volumeMounts"]}
    volumes = {each["name"]: each for each in pod()["volumes"]}
    where = paths.choose({}, root=True, state_dir=None)

    assert mounts.keys() == volumes.keys()
    assert {"/sys/fs/cgroup", str(where.run), str(where.lib), str(where.log)} <= {*mounts.values()}
    for name, volume in volumes.items():
        if "hostPath" in volume:
            assert mounts[name] == volume["hostPath"]["path"], "the same path inside and outside"
    assert manifest("ConfigMap")["metadata"]["name"] == volumes["config"]["configMap"]["name"]
    (file,) = manifest("ConfigMap")["data"]
    assert f"{mounts['config']}/{file}" == places.DEFAULT_PATH


def test_the_configuration_is_valid() -> None:
    """File and environment together are a configuration without a warning."""
    (text,) = manifest("ConfigMap")["data"].values()
    loaded = loader.from_text(text, "config.yaml", variables(), {})

    assert loaded.warnings == ()
    assert (loaded.config.state.on_stop, loaded.config.node.name) == ("handover", "node-1")


def test_every_variable_is_known() -> None:
    """No variable of ours that the loader would refuse, or silently skip."""
    ours = {name for name in variables() if name.startswith("KOORDLET_")}

    assert ours == {"KOORDLET_NODE__NAME", "KOORDLET_STATE__ON_STOP"}
    for name in ours:
        assert environment.layer({name: variables()[name]}).origins


def test_probes_ask_what_is_served() -> None:
    """Path, address and port of each probe are those of the HTTP server, seen from the kubelet."""
    served = set(http_api.Api(lambda: None, version="test", recorded=recorders.recorder()).routes())
    probes = {kind: container()[f"{kind}Probe"]["httpGet"] for kind in PROBES}

    assert {kind: each["path"] for kind, each in probes.items()} == PROBES
    assert set(PROBES.values()) <= served
    for each in probes.values():
        address = f"{each['host']}:{each['port']}"
        assert schema.defaults().report.http.address == address
    assert pod()["hostNetwork"], "the kubelet asks on the node's loopback"


PROBES = {"startup": "/livez", "readiness": "/readyz", "liveness": "/livez"}


def test_one_agent_at_a_time() -> None:
    """A second one on a node refuses to start, so a rollout must not begin with it."""
    rolling = manifest("DaemonSet")["spec"]["updateStrategy"]["rollingUpdate"]

    assert rolling.get("maxSurge", 0) == 0, "the default of every API server"


def test_privileges() -> None:
    """As few as the job allows."""
    context = container()["securityContext"]

    assert (
        context["privileged"],
        context["allowPrivilegeEscalation"],
        context["readOnlyRootFilesystem"],
    ) == (False, False, True)
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["DAC_OVERRIDE", "SYS_NICE"]}
    assert pod()["hostPID"]
    assert pod()["priorityClassName"] == "system-node-critical"


def test_the_image_has_this_version() -> None:
    """The manifest does not lag behind."""
    assert f"koordlet:{koordlet.__version__}" == container()["image"]


# The image ----------------------------------------------------------------------------------------


def instructions() -> Iterator[tuple[str, str]]:
    """Name and text of each instruction of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (REPO / "Dockerfile").read_text(), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def test_the_dockerfile_copies_what_is_there() -> None:
    """Each source exists, is not ignored, and is all that is not ignored."""
    sources = set()
    for name, rest in instructions():
        words = shlex.split(rest)
        if name == "COPY" and not words[0].startswith("--from="):
            sources.update(words[:-1])
    kept = {
        line[1:] for line in (REPO / ".dockerignore").read_text().split() if line.startswith("!")
    }

    assert {"koordlet", "requirements.lock"} == sources == kept
    assert all((REPO / source).exists() for source in sources)


def test_the_image_installs_as_the_makefile_does() -> None:
    """One way to install the lock file, each artefact by its hash."""
    runs = [rest for name, rest in instructions() if name == "RUN"]

    assert any(f"{INSTALL} requirements.lock" in run for run in runs)
    assert f"{INSTALL} $(1)" in (REPO / "Makefile").read_text()


def test_both_stages_have_the_same_interpreter() -> None:
    """An environment works only beside the interpreter that made it: the one in its paths."""
    bases = {shlex.split(rest)[0] for name, rest in instructions() if name == "FROM"}
    (chosen,) = (rest for name, rest in instructions() if name == "ARG")
    argument, _, default = chosen.partition("=")
    text = (REPO / "Dockerfile").read_text()

    assert {f"${{{argument}}}"} == bases
    version = re.match(r"python:(3\.\d+)-slim\Z", default)
    assert version
    assert {version[1]} == set(re.findall(r"lib/python(3\.\d+)/", text))


def test_the_entrypoint_is_no_shell() -> None:
    """SIGTERM must reach the agent itself, and its words must be a command line of ours."""
    (entrypoint,) = (rest for name, rest in instructions() if name == "ENTRYPOINT")
    (command,) = (rest for name, rest in instructions() if name == "CMD")
    words, args = yaml.safe_load(entrypoint), yaml.safe_load(command)

    assert words[0] == "/opt/koordlet/bin/python"
    assert container()["args"] == args
    assert args == [cli.parser("run").parse_args(args).command]
    done = subprocess.run(
        [sys.executable, *words[1:], "run", "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_image_has_the_command_of_the_documents(tmp_path: Path) -> None:
    """``kubectl exec ... -- koordlet check``: the script that the build writes, run here."""
    (run,) = (rest for name, rest in instructions() if name == "RUN" and "bin/koordlet" in rest)
    (path,) = (rest for name, rest in instructions() if name == "ENV" and rest.startswith("PATH="))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    written = run.replace("/opt/koordlet/bin", str(tmp_path))
    subprocess.run(["sh", "-c", written], check=True)
    done = subprocess.run(
        [tmp_path / "koordlet", "check", "--help"], capture_output=True, text=True, check=False
    )

    assert path.startswith("PATH=/opt/koordlet/bin:")
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: koordlet check " in done.stdout


# systemd ------------------------------------------------------------------------------------------


class _Unit(configparser.RawConfigParser):
    """A unit file; of a key that stands twice the values are joined by newlines."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


class _Joined(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and isinstance(self.get(key), list):
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def unit(name: str) -> _Unit:
    """The parsed unit file."""
    parsed = _Unit(strict=False, dict_type=_Joined, comment_prefixes=("#",), delimiters=("=",))
    parsed.read(REPO / "systemd" / name)
    return parsed


def commands(name: str) -> list[list[str]]:
    """Words of every Exec line that runs koordlet."""
    service = unit(name)["Service"]
    lines = [line for key in service if key.startswith("Exec") for line in service[key].split("\n")]
    return [shlex.split(line) for line in lines if "/koordlet " in line]


@pytest.mark.parametrize("name", UNITS)
def test_units_run_commands_that_exist(name: str) -> None:
    """Each command line is one that the parser takes."""
    runs = [words for words in commands(name) if words[0] == "/opt/koordlet/bin/koordlet"]

    assert runs
    for words in runs:
        parsed = cli.parser(words[1]).parse_args(words[1:])
        assert words[1] == parsed.command


def test_units_agree() -> None:
    """Both write the same places with the same rights; the helper does not outlive a final stop."""
    agent, helper = (unit(name) for name in UNITS)
    where = paths.choose({}, root=True, state_dir=None)
    for key, path in (
        ("RuntimeDirectory", where.run),
        ("StateDirectory", where.lib),
        ("LogsDirectory", where.log),
    ):
        assert path.name == agent["Service"][key] == helper["Service"][key]
    for key in ("CapabilityBoundingSet", "UMask", "SystemCallFilter", "RuntimeDirectoryPreserve"):
        assert agent["Service"][key] == helper["Service"][key], key
    assert helper["Unit"]["PartOf"] == "koordlet.service"
    assert commands(UNITS[0])[-1][-1] == "%n"
    assert commands(UNITS[1])[-1][-1] == "koordlet.service"


def test_the_switch_depends_on_nothing() -> None:
    """The timer goes by the clock, is armed by the agent's start, and looks for the journal."""
    timer, look = unit("koordlet-deadline.timer"), unit("koordlet-deadline.service")
    where = paths.choose({}, root=True, state_dir=None)

    assert unit(UNITS[0])["Unit"]["Wants"] == "koordlet-deadline.timer"
    assert timer["Timer"]["Unit"] == "koordlet-deadline.service"
    assert not {"PartOf", "BindsTo", "Requires"} & {*timer["Unit"], *look["Unit"]}
    assert [key for key in timer["Timer"] if key.startswith("On")] == ["OnCalendar"]
    assert str(where.journal) == look["Unit"]["ConditionPathExists"]
    assert UNITS[1] in look["Service"]["ExecStart"]
    assert "python" not in look["Service"]["ExecStart"], "it may be what is broken"
    assert "/opt" not in look["Service"]["ExecStart"]


def test_unit_variables_are_known() -> None:
    """No variable that the loader would refuse: the agent would not start."""
    lines = unit(UNITS[0])["Service"]["Environment"].split("\n")
    given = dict(line.split("=", 1) for line in lines)

    assert given["KOORDLET_STATE__ON_STOP"] == "handover"
    assert loader.from_text(None, "", given, {}).warnings == ()


def test_the_example_configuration_is_valid() -> None:
    """It says what the defaults are; its commented part is valid, too."""
    text = (REPO / "systemd" / "config.yaml").read_text()
    loaded = loader.from_text(text, "config.yaml", {}, {})
    workloads = re.sub(
        r"^#  ", "  ", text.replace("workloads: []", "workloads:"), flags=re.MULTILINE
    )
    used = loader.from_text(workloads, "config.yaml", {}, {})

    assert ((), schema.defaults()) == (loaded.warnings, loaded.config)
    assert [workload.name for workload in used.config.workloads] == ["web", "batch"]
