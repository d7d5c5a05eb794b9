"""system_qos: node-wide kernel settings, opt-in.

Covers: ``vm.min_free_kbytes``, ``vm.watermark_scale_factor``, and four switches of one vendor's
kernel, from ``systemStrategy`` of a NodeSLO or from the configuration.
Does not cover: anything of a group.

Rules:
1. The policy is off by default: these files affect every program on the machine.
2. A missing field leaves its file alone. So does a value outside the bounds, with a condition: too
   much reserved memory makes a machine unusable.
3. A file that this kernel lacks is refused and reported once, as every refusal.
4. ``schedFeatures`` is reported and never set: these are debugging features of the kernel's
   scheduler (``/sys/kernel/debug/sched/features``) that change from version to version.

* Formula: min_free_kbytes = memory * minFreeKbytesFactor / 10000
* Writes: `/proc/sys/vm/min_free_kbytes`, `/proc/sys/vm/watermark_scale_factor`; switches of one
  vendor's kernel where they are
* See: `koordlet explain write PATH`
* More: best-effort.md
"""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import decision, meter, plan, snapshot, strategies, strategy_field
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "system_qos"
State = decision.Stateless

MIN_FREE = "/proc/sys/vm/min_free_kbytes"
WATERMARK = "/proc/sys/vm/watermark_scale_factor"
#: Field to its file and bounds. The last four are of one vendor's kernel (Alibaba Cloud Linux).
FILES = {
    "min_free_kbytes_factor": (MIN_FREE, 10 << 10, 10 << 20),
    "watermark_scale_factor": (WATERMARK, 10, 400),
    "memcg_reap_back_ground": ("/sys/kernel/mm/memcg_reaper/reap_background", 0, 1),
    "sched_group_identity_enabled": ("/proc/sys/kernel/sched_group_identity_enabled", 0, 1),
    "sched_idle_saver_wmark": ("/proc/sys/kernel/sched_idle_saver_wmark", 0, 1_000_000_000),
    "page_cache_limit_enabled": ("/sys/kernel/mm/pagecache_limit/enabled", 0, 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Knobs of the whole kernel; null leaves one alone. A NodeSLO replaces them."""

    system: strategies.System = strategy_field.keys(strategies.System)
    #: Upper bound of `vm.min_free_kbytes`, in percent of the machine's memory.
    max_free_percent: int = strategy_field.bound(0, 20, default=5)


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide the kernel settings that the strategy names."""
    strategy = settings.system if now.cluster_slo is None else now.cluster_slo.system
    proposal = proposals.Proposal(STEM, now)
    wrong: list[str] = []
    for name, (path, low, high) in FILES.items():
        asked = getattr(strategy, name)
        if asked is None:
            continue
        value, most = int(asked), high
        if path == MIN_FREE:
            total = past.node.last("", meter.MEMORY_TOTAL)
            if total is None:
                wrong.append(f"{name}: not written, the machine's memory size is unknown")
                continue
            value = int(total) // 1024 * value // 10_000
            most = min(high, int(total) // 1024 * settings.max_free_percent // 100)
        if not low <= value <= most:
            wrong.append(f"{name}: {value} is outside {low}…{most}, {path} stays unchanged")
            continue
        proposal.write(path, str(value), f"{name} is {asked}")
        proposal.why[path] = f"{name} is {asked}"
    if strategy.sched_features:
        names = ", ".join(sorted(strategy.sched_features))
        wrong.append(
            f"sched_features ({names}): kernel debugging features, koordlet never sets them"
        )
    if wrong:
        proposal.say("SystemQosIgnored", "; ".join(wrong))
    return proposal.decided(state)


POLICY = declaration.Policy(
    stem=STEM,
    summary="node-wide kernel settings, opt-in",
    protects="it keeps memory free for the kernel, as the operator configured",
    decide=decide,
    settings=Settings(),
    default_mode=plan.Mode.OFF,
)
