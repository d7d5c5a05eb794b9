"""housekeeping: keeps kernel work off exclusive CPUs.

Covers: interrupts and the kernel threads of unbound work queues. Does not cover: finding their
files (``host.topology.kernel_work``), kernel threads that a driver has bound, ticks
(``nohz_full``).

Rules:
1. It is an option: switched off unless the operator asks, since interrupts may be somebody else's
   (``irqbalance`` must be stopped, or it moves them back and each pass says so).
2. What is on good CPUs already stays. What is on some good ones keeps those, and what is on none
   gets all of them but those set aside at boot. So nothing that a driver spread over CPUs is piled
   up more than needed.
3. Where nobody holds CPUs alone, and none are reserved with ``onto_reserved``, nothing is named, so
   everything is put back.

* Formula: allowed = online - held alone (- reserved, unless ontoReserved)
* Writes: `/proc/irq/N/smp_affinity_list`, `/sys/devices/virtual/workqueue/cpumask`
* See: `koordlet explain write PATH`
* More: cpu.md
"""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import cpuset, decision, ledger, plan, snapshot, strategy_field
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "housekeeping"
State = decision.Stateless


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Keeps interrupts and kernel threads away from exclusive CPUs."""

    #: Move interrupts away from exclusive CPUs. Stop `irqbalance` first.
    interrupts: bool = strategy_field.setting(default=True)
    #: Move the kernel threads of unbound workqueues away from exclusive CPUs.
    kernel_threads: bool = strategy_field.setting(default=True)
    #: Move both to the reserved CPUs, if there are any; false uses all CPUs that are not exclusive.
    onto_reserved: bool = strategy_field.setting(default=False)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide where kernel work shall run."""
    proposal = proposals.Proposal(STEM, now)
    good, why = _good(now, settings)
    proposal.why["the kernel's own work"] = f"{good}: {why}" if good else why
    for path in now.kernel_work if good else ():
        value = _value(now, path, good, settings)
        if value:
            proposal.write(path, value, why)
    return proposal.decided(state)


def _good(now: snapshot.Snapshot, settings: Settings) -> tuple[cpuset.CPUSet, str]:
    online = now.topology.online
    reserved = now.ledger.held(ledger.Owner.RESERVED) & online
    if settings.onto_reserved and reserved:
        return reserved, "kernel work runs on the reserved CPUs"
    held = now.ledger.held(ledger.Owner.LSE, ledger.Owner.LSR) & online
    if not held or held == online:
        return cpuset.CPUSet(), "no workload holds exclusive CPUs"
    return online - held, f"kernel work stays off CPUs {held}, which workloads hold exclusively"


def _value(now: snapshot.Snapshot, path: str, good: cpuset.CPUSet, settings: Settings) -> str:
    """The new text of a file in its own form; empty where it is left alone."""
    text = now.kernel_work[path]
    is_list = path.endswith("_list")
    threads = path.endswith("/cpumask")
    if not (settings.kernel_threads if threads else settings.interrupts):
        return ""
    try:
        has = cpuset.CPUSet.parse(text) if is_list else cpuset.CPUSet.parse_mask(text)
    except ValueError:
        return ""
    apart = now.topology.isolated | now.topology.nohz_full
    shall = has & good or good - apart or good
    if shall == has:
        return text
    return str(shall) if is_list else _mask(shall, text)


def _mask(cpus: cpuset.CPUSet, like: str) -> str:
    """A mask with as many digits as the kernel prints."""
    first, *rest = like.split(",")
    digits = len(first) + 8 * len(rest)
    plain = f"{cpus.bits:0{digits}x}"
    words = [plain[max(0, end - 8) : end] for end in range(len(plain), 0, -8)]
    return ",".join(reversed(words))


POLICY = declaration.Policy(
    stem=STEM,
    summary="interrupts and kernel threads off exclusive CPUs",
    protects="it keeps kernel work off exclusive CPUs",
    decide=decide,
    settings=Settings(),
    default_mode=plan.Mode.OFF,
)
