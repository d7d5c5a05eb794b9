"""The sources become one effective configuration with the origin of every value."""

from __future__ import annotations

import pytest

from koordlet.config import loader, schema, sourced
from koordlet.model import errors
from tests.config.refusing import Write

FULL = """\
mode: observe
node:
  name: n1
  annotations: {node.koordinator.sh/reservation: '{"reservedCPUs":"0"}'}
workloads:
- name: web
  qos: LS
  requests: {cpu: 1500m, memory: 1Gi}
  match: {unit: nginx.service}
- {name: pinned, qos: LSR, cpus: 4, priority: 9500, match: {cgroup: a/b}}
policies:
  reserved_cpus: {mode: shadow, cpus: 0-1, limits: {maxCpus: 4}}
  shared_pools:
    mode: off
state: {handoverSeconds: 0, onStop: handover}
"""


def test_built_in() -> None:
    """Without any source everything is built in."""
    effective = loader.load(None, {}, {})

    assert schema.defaults() == effective.config
    assert not effective.origins
    assert effective.origin("mode") == "built-in"


def test_defaults_of_the_contract() -> None:
    """The defaults are those that the documentation promises."""
    defaults = schema.defaults()

    assert (
        defaults.mode,
        defaults.state.handover_seconds,
        defaults.state.on_stop,
    ) == ("enforce", 120, "restore")
    assert defaults.report.http.address == "127.0.0.1:9316"
    assert (
        defaults.policies.reserved_cpus.mode,
        defaults.policies.shared_pools.mode,
    ) == ("enforce", "enforce")


def test_full(write: Write) -> None:
    """A file sets what it says and leaves the rest."""
    path = write(FULL)

    effective = loader.load(path, {}, {})

    config = effective.config
    assert (
        config.mode,
        config.policies.shared_pools.mode,
        config.policies.reserved_cpus.mode,
    ) == ("observe", "off", "shadow")
    assert (config.workloads[1].cpus, config.policies.reserved_cpus.cpus) == (4, "0-1")
    assert config.workloads[0].requests == {"cpu": "1500m", "memory": "1Gi"}
    assert (config.log.level, effective.warnings) == ("info", ())
    assert f"{path}:16" == effective.origins["policies.shared_pools.mode"]
    assert f"{path}:10" == effective.origins["workloads[0].requests.memory"]
    assert effective.origin("workloads[0].priority") == "built-in"
    assert f"{path}:6" == effective.origins['node.annotations["node.koordinator.sh/reservation"]']


@pytest.mark.parametrize("word", ["off", "'off'", "false"])
def test_off(write: Write, word: str) -> None:
    """Off is a mode, also where a tool of YAML 1.1 has rewritten it."""
    path = write(f"policies: {{shared_pools: {{mode: {word}}}}}\n")

    assert loader.load(path, {}, {}).config.policies.shared_pools.mode == "off"


@pytest.mark.parametrize("key", ["state", "policies", "node", "workloads", "report"])
def test_null_section(write: Write, key: str) -> None:
    """A section whose keys are all commented out is at its defaults."""
    assert schema.defaults() == loader.load(write(f"{key}:\n"), {}, {}).config


def test_precedence(write: Write) -> None:
    """A flag beats a variable, a variable beats the file, the file beats the default."""
    path = write("mode: enforce\nlog: {level: error}\nstate: {handoverSeconds: 1}\n")
    env = {"KOORDLET_MODE": "enforce", "KOORDLET_STATE__HANDOVER_SECONDS": "2"}
    flags = {"mode": sourced.Flag("observe", "--observe")}

    effective = loader.load(path, env, flags)

    assert (effective.config.mode, effective.origins["mode"]) == ("observe", "--observe")
    assert (
        effective.config.state.handover_seconds,
        effective.origins["state.handoverSeconds"],
    ) == (2, "KOORDLET_STATE__HANDOVER_SECONDS")
    assert ("error", f"{path}:4") == (effective.config.log.level, effective.origins["log.level"])


def test_bad_file_below_good_flag(write: Write) -> None:
    """A bad value in the file is an error even where a flag has the last word."""
    path = write("mode: bogus\n")

    with pytest.raises(errors.ConfigError) as caught:
        loader.load(path, {}, {"mode": "observe"})

    assert f"{path}:3:7: mode" == caught.value.culprit


def test_flag_text() -> None:
    """A flag may hand over text; it is read as the type of its field."""
    flags = {"state.handoverSeconds": "5", "report.http.enabled": "false"}

    config = loader.load(None, {}, flags).config

    assert (config.state.handover_seconds, config.report.http.enabled) == (5, False)


def test_flag_bad() -> None:
    """A bad value of a flag is the operator's error, named as it was spelled."""
    with pytest.raises(errors.ConfigError) as caught:
        loader.load(None, {}, {"state.dir": sourced.Flag("x", "--state-dir")})

    assert caught.value.culprit == "--state-dir: state.dir"


def test_flag_unknown() -> None:
    """A flag for a field that does not exist is our own mistake."""
    with pytest.raises(errors.BugError):
        loader.load(None, {}, {"state.dri": "x"})


def test_limits_last(write: Write) -> None:
    """The limit holds against every source, and the origin of a cut value is the limit."""
    path = write("policies: {reserved_cpus: {limits: {maxCpus: 2}}}\n")
    env = {"KOORDLET_POLICIES__RESERVED_CPUS__CPUS": "0-3"}

    effective = loader.load(path, env, {})

    key = "policies.reserved_cpus"
    assert effective.config.policies.reserved_cpus.cpus == "0-1"
    assert f"{path}:3 ({key}.limits.maxCpus)" == effective.origins[f"{key}.cpus"]
    assert (
        f"{key}.cpus: 0-3 exceeds {key}.limits.maxCpus and is reduced to 0-1",
    ) == effective.warnings


def test_a_key_that_went_is_accepted_with_a_warning(write: Write) -> None:
    """It names the line, or the variable, that sets it."""
    path = write("policies: {adaptive: {floorMilli: 60}}\n")
    env = {"KOORDLET_POLICIES__ADAPTIVE__MAX_AGE_SECONDS": "9"}

    assert loader.load(path, env, {}).warnings == (
        f"{path}:3: policies.adaptive.floorMilli has no effect any more: remove it",
        f"{next(iter(env))}: policies.adaptive.maxAgeSeconds has no effect any more: remove it",
    )


def test_quantity_without_use(write: Write) -> None:
    """A quantity beside a CPU list is not used, and that is said."""
    path = write("policies: {reserved_cpus: {cpus: '0', quantity: 2}}\n")

    assert loader.load(path, {}, {}).warnings == (
        "policies.reserved_cpus.quantity is ignored because cpus is set",
    )


def test_a_cgroup_that_is_declared_twice(write: Write) -> None:
    """The first workload has it; the other is named before the agent finds out."""
    twice = ", ".join(f"{{name: {name}, qos: LS, match: {{cgroup: web}}}}" for name in "ab")
    path = write(f"workloads: [{twice}, {{name: c, qos: BE, match: {{unit: c.service}}}}]\n")

    assert loader.load(path, {}, {}).warnings == (
        "workload b: its cgroup is that of a, which alone has it",
    )


def test_frozen() -> None:
    """A configuration cannot be changed in place."""
    with pytest.raises(AttributeError, match="handover_seconds"):
        loader.load(None, {}, {}).config.state.handover_seconds = 1
