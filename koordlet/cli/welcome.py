"""Greets a person after ``koordlet run``: machine, owners, enforced policies, where to look.

Covers: the text, and the demo's last line. Does not cover: anything in between; that is the log's
and the surfaces' part.
"""

from __future__ import annotations

from koordlet.cli import output, plan
from koordlet.cli import topology as machine
from koordlet.report import view


def lines(now: view.ReportView, addresses: tuple[str, ...], *, demo_on: bool) -> list[str]:
    """The whole greeting."""
    enforcing = now.mode == "enforce"
    verb = "enforcing" if enforcing else "observing: nothing is changed"
    text = [f"koordlet on {output.visible(now.snapshot.node.name)}, {verb}"]
    text += [f"  ! {output.visible(one)}" for one in view.banner(now) if enforcing]
    text += ["", "The machine"]
    text += [
        f"  {'  ' * line.level}{line.text}".rstrip()
        for line in machine.lines(now.snapshot.topology)
    ]
    text += ["", "Whose CPUs", *(f"  {row}" for row in plan.owners(now.plan)), ""]
    text += [f"What {'is' if enforcing else 'would be'} enforced", *_workloads(now)]
    if now.plan.steps and not enforcing:
        text += ["", "What would be done"]
        text += [f"  {step.action.reason} ({step.action.target})" for step in now.plan.steps]
    text += ["", "Where to look", *(f"  {address}" for address in addresses)]
    if demo_on and enforcing:
        page = next((one for one in addresses if one.startswith("http")), None)
        if page is not None:
            text += ["", f"Open {page.split()[0]} beside this. For five of each twenty seconds the"]
            text += [
                "latency-sensitive service is asked for much; watch what best-effort work gets"
            ]
            text += ["then, and how long requests take."]
        text += ["", "Ctrl-C stops the demo, puts everything back and removes its cgroups.", ""]
    elif demo_on:
        text += ["", "Run it as root to see it enforced. Ctrl-C stops it."]
    return text


def _workloads(now: view.ReportView) -> list[str]:
    rows = []
    for pod in now.snapshot.pods:
        group = now.snapshot.groups.get(pod.group) if pod.group is not None else None
        effective = group.effective() if group is not None else None
        used = now.usage.get(pod.key)
        rows.append(
            (
                pod.qos.value,
                pod.key,
                pod.group or "not running",
                "?" if effective is None else str(effective),
                "?" if used is None else f"{used:.2f}",
                now.plan.explanations.get("shared_pools", {}).get(pod.key, ""),
            )
        )
    if not rows:
        return ["  nothing: no workload is declared (workloads: in the configuration)"]
    head = ("QOS", "WORKLOAD", "CGROUP", "CPUS", "CORES USED", "WHY")
    return output.table(rows, head=head, indent="  ")
