"""Greets a person after ``koordlet run``.

Covers: machine, owners, enforced policies, where to look.
Does not cover: what happens after that: of the demo it is narrated (``narration``).
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
    text += [f"  ! {output.visible(warning)}" for warning in view.banner(now) if enforcing]
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
        page = next((address for address in addresses if address.startswith("http")), None)
        if page is not None:
            text += ["", f"Open {page.split()[0]} beside this."]
        text += [
            "",
            "The next minute compares: the same service and best-effort work without koordlet (its",
            "policies in shadow) and with it, in turn. A summary follows.",
        ]
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
        cells = (
            "?" if effective is None else str(effective),
            "?" if used is None else f"{used:.2f}",
            now.plan.explanations.get("shared_pools", {}).get(pod.key, ""),
        )
        rows.append((pod.qos.value, pod.key, pod.group or "not running", *cells))
    if not rows:
        return ["  nothing: no workload is declared (workloads: in the configuration)"]
    head = ("QOS", "WORKLOAD", "CGROUP", "CPUS", "CORES USED", "WHY")
    return output.table(rows, head=head, indent="  ")
