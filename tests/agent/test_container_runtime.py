"""What an agent asks of a container runtime's adapter, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from koordlet.agent import container_runtime
from koordlet.model import decision, result
from tests.kit.lives import Life

CONDITION = decision.Condition(type="RuntimeSilent", reason="Test", message="it is silent")


class RecordingRuntime(container_runtime.Runtime):
    """Remembers what it was asked, in order; the first pass is its own."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.targets: set[str] = set()

    async def start(self, run_pass: Callable[[], bool]) -> None:
        self.calls.append("start")
        run_pass()

    def open(self) -> None:
        self.calls.append("open")

    def on_pass(self) -> None:
        self.calls.append("on_pass")

    def on_results(self, results: Sequence[result.Result]) -> None:
        self.targets |= {step.target for step in results}

    def reset(self) -> None:
        self.calls.append("reset")

    def close(self) -> None:
        self.calls.append("close")

    async def stop(self) -> None:
        self.calls.append("stop")

    def conditions(self) -> tuple[decision.Condition, ...]:
        return (CONDITION,)

    def counted(self) -> Mapping[str, float]:
        return {"asked": 3.0}


def test_the_runtime_is_asked_from_the_start_to_the_stop_of_an_agent(ram: Path) -> None:
    """It answers after the first pass and ceases before everything is put back."""
    runtime = RecordingRuntime()

    async def act(life: Life) -> None:
        await life.ready()
        await life.shown.next(lambda: "open" in runtime.calls)
        life.daemon.hup()
        await life.shown.next(lambda: "reset" in runtime.calls)

    life = Life(ram, runtime=lambda _: runtime)
    life.run(act)

    calls = [call for call in runtime.calls if call != "on_pass"]
    assert calls == ["start", "open", "reset", "close", "stop"]
    assert runtime.calls.index("start") < runtime.calls.index("on_pass")
    assert runtime.calls[-1] == "stop"


def test_the_runtime_hears_of_results_and_its_conditions_are_shown(ram: Path) -> None:
    """What was carried out reaches it; what it knows reaches the reader of the view."""
    runtime = RecordingRuntime()

    async def act(life: Life) -> None:
        await life.ready()
        assert "/sys/fs/cgroup/cpuset/web/cpuset.cpus" in runtime.targets
        runtime.targets.clear()

    life = Life(ram, runtime=lambda _: runtime)
    life.run(act)

    newest = life.shown.views[-1]
    assert newest is not None
    assert CONDITION in newest.plan.conditions
    assert newest.runtime == {"asked": 3.0}
    assert "/sys/fs/cgroup/cpuset/web/cpuset.cpus" in runtime.targets, "it was put back"
