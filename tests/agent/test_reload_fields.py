"""Every field of the configuration, changed in a running agent, is in effect or waits by name.

What a field does is found by comparison: an agent that starts with the changed field differs from
one that starts without it, somewhere in its objects. A running agent that reloads must show the
same there after its next pass.
"""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pydantic
import pytest
import yaml

from koordlet.agent import bootstrap, lifecycle, reload
from koordlet.config import catalog, loader, plain, reloader, schema
from koordlet.model import spread
from koordlet.workloads import gatherer
from tests.kit import agents, sites

#: Slices of the fields, for runners beside each other.
_PARTS = 4
#: Read by the agent when it is needed, so that no object holds it: how it is seen.
_ON_DEMAND: Mapping[str, Callable[[lifecycle.Agent], object]] = {
    "policies.node_pressure.limits.inFlight": lambda who: _evictor(who)._limits().in_flight,
    "policies.node_pressure.limits.perMinute": lambda who: _evictor(who)._limits().per_minute,
    "eviction.by": lambda who: _backend(who, "_delete"),
    "eviction.dryRun": lambda who: _backend(who, "_dry_run"),
    "state.auditBytes": lambda who: who.publisher.audit._max_bytes(),
    "state.handoverSeconds": lambda who: who.hand_over(),
    "state.onStop": lambda who: who.tick.effective.config.state.on_stop,
}
#: Held outside of the agent: one log for the process.
_OF_THE_PROCESS = {"log.level", "log.format"}
#: A socket of the real kernel's, which the stand-in has not (``tests/host/resctrl``).
_OF_THE_KERNEL = {"policies.resctrl.processEvents"}
_WITHOUT_EFFECT = {"policies.adaptive.floorMilli", "policies.adaptive.maxAgeSeconds"}
#: Valid only with another value of a second field, with which it is read.
_NEVER_ALONE = {"nodeShutdown.criticalSeconds"}
_USUAL: Mapping[str, Any] = {
    **yaml.safe_load(agents.HEADER + sites.WORKLOADS),
    "log": {"level": "error"},
    # What a field asks for beside it.
    "counters": {"cpi": {"enabled": True}},
    "policies": {
        "resctrl": {"mode": "enforce"},
        "node_pressure": {
            "evictionHard": {"memory.available": "100Mi"},
            "evictionSoft": {"memory.available": "200Mi"},
            "evictionSoftGracePeriod": {"memory.available": "1m"},
            "evictionOwn": {"memory.full.avg10": "40%"},
        },
        "blkio_qos": {
            name: {"enable": True, "blocks": [{"name": "sdx"}]}
            for name in ("beClass", "cgroupRoot")
        },
        **{
            stem: {name: {"enable": True} for name in ("lsrClass", "lsClass", "beClass")}
            for stem in ("cpu_qos", "memory_qos")
        },
        "page_cache_reclaim": {
            name: {"pageCacheLimitEnable": True} for name in ("lsrClass", "lsClass", "beClass")
        },
    },
    "report": {
        "http": {"secure": {"certificate": "/c", "key": "/k"}},
        "grpc": {"tls": {"certificate": "/c", "key": "/k", "authority": "/a"}},
        "scheduler": {"tls": {"certificate": "/c", "key": "/k", "authority": "/a"}},
    },
}
#: Tried in this order, until one is valid and is not what the field says anyway.
_TRIED: tuple[object, ...] = (
    *(True, False, "off", "shadow", "observe", "never", "warning", "json"),
    *(1, 2, 11, 60, 100, 200, 2000, 1 << 20, 5.0, "11", "/x", "a", "10%", "7s"),
    *("usage", "request", "maxUsageRequest", "seed", "cfsQuota", "cpuBurstOnly"),
    *("evictByAllocatable", "delete", "handover", "peer", "api", "local", "127.0.0.1:1"),
    *("PreferNoSchedule", "exact", "200M", "l3"),
    *(
        [],
        ["none"],
        ["LS"],
        ["eth9"],
        ["cdp"],
        ["peer"],
        [{"name": "a", "ways": 10}],
        [{"name": "sda"}],
        [{"priority": 0, "seconds": 1}],
        [{"model": "a", "base": 2}],
    ),
    [{"name": "late", "qos": "LS", "match": {"cgroup": "late"}}],
    *({"a": "b"}, {"memory.available": "1Gi"}, {"memory.available": "2m"}),
    *({"memory.full.avg10": 50}, {"memory.full.avg10": "50%"}, {"cpu": 2}),
)


def _evictor(who: lifecycle.Agent) -> Any:
    assert who.evictor is not None
    return who.evictor


def _backend(who: lifecycle.Agent, name: str) -> object:
    chosen = _evictor(who)._backend()
    return type(chosen).__name__, getattr(chosen, name, None)


class _Cluster:
    """Sources of a cluster that has nothing to say."""

    store: Any = object()
    alone = False

    def took(self) -> Mapping[tuple[str, str], spread.Spread]:
        """Nobody was asked."""
        return {}


@dataclass(slots=True)
class Running:
    """One agent on three workloads, with its configuration file."""

    directory: Path
    config: Mapping[str, object]
    who: lifecycle.Agent = field(init=False)
    live: reload.LiveConfig = field(init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir()
        site = sites.workloads("v1", self.directory / "state")
        self.file.write_text(json.dumps(self.config))
        effective = loader.load(str(self.file), {}, {})
        run = site.line()
        run.configure(effective)
        wired = bootstrap.wire(effective, run.host, cast("gatherer.Gatherer", _Cluster()))
        why = bootstrap.why_observe(effective, run.observer.layout, live=False)
        self.who = lifecycle.Agent(run, site.paths, enforce=not why, wired=wired)
        self.live = reload.LiveConfig(
            self.who, reloader.Reloader(str(self.file), {}, {}, effective)
        )
        self.who.one_pass(slow=True)

    @property
    def file(self) -> Path:
        """Its configuration."""
        return self.directory / "config.yaml"

    def reload(self, config: Mapping[str, object]) -> None:
        """Take another file, and pass."""
        self.file.write_text(json.dumps(config))
        self.live.look(forced=True, reloading=lambda: None)
        assert self.live.reload.error is None, str(self.live.reload.error)
        self.who.one_pass(slow=True)


def _changed(field: catalog.Field, kubelet: str) -> Mapping[str, object]:
    """The usual configuration with another value of one field."""
    for value in (kubelet,) if field.path == "kubelet.configFile" else _TRIED:
        body = json.loads(json.dumps(_USUAL))
        section = body
        for key in field.loc[:-1]:
            section = section.setdefault(key, {})
        section[field.loc[-1]] = value
        try:
            record = schema.Config.model_validate(body).record()
        except pydantic.ValidationError:
            continue
        if [path for path, _ in plain.changes(_record(), record)] == [field.path]:
            return cast("Mapping[str, object]", body)
    raise AssertionError(f"no other value of {field.path} is tried")


@functools.cache
def _record() -> plain.Section:
    return schema.Config.model_validate(_USUAL).record()


def _held(value: object, at: str, seen: set[int]) -> Iterator[tuple[str, object]]:
    """Every plain value below an object of the program, with the way to it."""
    if value is None or isinstance(value, str | int | float | bytes):
        yield at, value
        return
    if id(value) in seen or isinstance(value, plain.Section | types.FunctionType | type):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _held(inner, f"{at}[{key}]", seen)
    elif isinstance(value, frozenset | set):
        yield at, sorted(map(str, value))
    elif isinstance(value, list | tuple):
        yield f"{at}.len", len(value)
        for number, inner in enumerate(value):
            yield from _held(inner, f"{at}[{number}]", seen)
    elif type(value).__module__.startswith("koordlet."):
        slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
        for name in sorted({*getattr(value, "__dict__", ()), *slots} - _NOT_FOLLOWED):
            yield from _held(getattr(value, name, None), f"{at}.{name}", seen)


#: The configuration itself, which always follows; and what is no object of the agent's.
_NOT_FOLLOWED = {"effective", "text", "origins", "host", "log", "_finder", "__weakref__"}
#: What the configuration sets and nothing else changes: all of it follows. Elsewhere, what an agent
#: remembers of the passes before a reload is beside it.
_SET = tuple(
    f"agent.{name}"
    for name in (
        *("tick.settings", "tick.modes", "tick.guard.on", "_evictor", "publisher.audit"),
        *("tick.observation.places", "tick.observation.declared", "tick.observation.node"),
        *("tick.observation.units", "tick.observation.observer"),
    )
)


def _values(running: Running) -> dict[str, object]:
    values = dict(_held(running.who, "agent", set()))
    for path, see in _ON_DEMAND.items():
        values[f"on demand: {path}"] = see(running.who)
    return values


def _different(
    left: Mapping[str, object], right: Mapping[str, object], but: Collection[str] = ()
) -> set[str]:
    """The ways to values that two agents do not share."""
    return {at for at in {*left, *right}.difference(but) if left.get(at) != right.get(at)}


@pytest.mark.parametrize("part", range(_PARTS))
def test_a_changed_field_is_in_effect_with_the_next_pass_or_waits_by_name(
    ram: Path, part: int
) -> None:
    """A reload makes of a field what a start does, unless ``config.needs_restart`` has it."""
    usual = _values(Running(ram / "usual", _USUAL))
    by_chance = _different(usual, _values(Running(ram / "again", _USUAL)))
    running = Running(ram / "running", _USUAL)
    kubelet = ram / "kubelet.yaml"
    kubelet.write_text("kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n")
    wrong: dict[str, object] = {}
    fields = [field for field in catalog.fields() if field.path not in _NEVER_ALONE]
    for number, changing in enumerate(fields[part::_PARTS]):
        config = _changed(changing, str(kubelet))
        running.reload(config)
        if changing.at_start or changing.path in _OF_THE_PROCESS | _OF_THE_KERNEL | _WITHOUT_EFFECT:
            wanted = [changing.path] if changing.at_start else []
            if running.live.waiting != wanted:
                wrong[changing.path] = running.live.waiting
            continue
        started = Running(ram / str(number), config)
        fresh = _values(started)
        effects = _different(usual, fresh, by_chance)
        missed = effects & _different(fresh, _values(running))
        started.who.close()
        if running.live.waiting or effects == missed or any(at.startswith(_SET) for at in missed):
            wrong[changing.path] = sorted(missed)[:5] or "no effect was found"

    assert wrong == {}


def test_level_and_form_of_the_log_are_those_of_the_newest_configuration(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that tells of a reload is the first that the new level and form decide about."""
    running = Running(ram / "running", _USUAL)
    as_json = []
    for wanted in ({"level": "info", "format": "json"}, {"level": "info", "format": "console"}):
        capsys.readouterr()
        running.reload({**_USUAL, "log": wanted})
        line = next(
            line for line in capsys.readouterr().err.splitlines() if "config.applied" in line
        )
        as_json.append(line.startswith("{"))

    assert as_json == [True, False]
