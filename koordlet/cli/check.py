"""``koordlet check``: can this machine be managed, and what is missing; are these quotas in order.

Covers: what the machine supports, as a list or JSON; pods that koordlet's scheduler would refuse
for what they name; with files, each mistake of their quotas. Does not cover: fixing it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from koordlet.agent import bootstrap, sources
from koordlet.cli import options, output, scheduler
from koordlet.model import cgroup, errors, snapshot
from koordlet.report import documents
from koordlet.scheduler.objects import unserved

if TYPE_CHECKING:
    from koordlet.scheduler.sim import quota_review

EXAMPLES = """\
koordlet check             what works here
koordlet check --strict    exit 1 when anything is missing
kubectl get pods -A -o json > all.json; koordlet check --pods all.json
koordlet check quotas.yaml --strict    each mistake of these quotas, its place and its remedy
"""
#: Unmanaged containers that are listed one by one.
_SHOWN = 10
_ISOLATED = (
    "isolated      {}: not balanced by the kernel (isolcpus); out of the pools where the rest is"
    " enough for latency-sensitive work, for LSE and LSR workloads that name them"
)
_MISTAKE = "object path message fix warning"
_OPTIONS = {
    "--pods FILE": "pods of a cluster, as kubectl prints them: how"
    " many name what koordlet's scheduler refuses (default: the pods of this node, by their keys)",
    "--strict": "exit 1 when anything is missing, or wrong with a FILE",
    "--scheduler-config FILE": "a KubeSchedulerConfiguration: by its arguments quotas are judged",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="ElasticQuotas and profiles, as kubectl prints them, to be checked in place of this"
        " machine; nodes among them tell how much there is",
    )
    options.config(parser)
    options.root(parser)
    options.output(parser, ("table", "json"))
    options.declare(parser, _OPTIONS)
    options.cgroup_root(parser)


def run(args: argparse.Namespace) -> int:
    """Look once, and print what this machine supports; or check the files."""
    if args.files:
        return _files(args)
    config = bootstrap.effective(args, {})
    host = bootstrap.host(args)
    observed = sources.once(config.config, host)
    seen = bootstrap.open_tick(args, host, config, take=lambda: observed).look()
    why = bootstrap.why_observe(config, seen.layout) if host.live else "a recorded machine"
    choice = sources.choose(config.config, host)
    asking = _asking(args.pods, seen)
    report = {**document(seen, why, choice), "refusedByScheduler": asking}
    output.show(args.output, report, [*lines(seen, why, choice), *_refused(asking)])
    return 1 if args.strict and (seen.unsupported or why) else 0


def _files(args: argparse.Namespace) -> int:
    """Check the quotas of files."""
    # The scheduler: 280 ms that a check of this machine does without.
    from koordlet.kubeapi import manifests  # noqa: PLC0415
    from koordlet.scheduler.loop import configuration  # noqa: PLC0415
    from koordlet.scheduler.sim import quota_review  # noqa: PLC0415

    complaints: list[str] = []
    bodies = [body for path in args.files for body in manifests.load(path, complaints)]
    configured = scheduler.read_configuration(args.scheduler_config) or configuration.usual()
    output.warn((*complaints, *configured.warnings))
    number, mistakes = quota_review.review(bodies, configured)
    if not number:
        raise errors.ConfigError(
            "no ElasticQuota and no ElasticQuotaProfile is in it",
            culprit=", ".join(args.files),
            fix="name a file that has some: kubectl get elasticquotas -A -o yaml",
        )
    report = {"quotas": number, "mistakes": documents.each(mistakes, _MISTAKE)}
    output.show(args.output, report, list(_mistaken(number, mistakes)))
    return 1 if args.strict and mistakes else 0


def _mistaken(number: int, mistakes: Sequence[quota_review.Mistake]) -> Iterator[str]:
    for mistake in mistakes:
        yield f"{'warning' if mistake.warning else 'error'}: {mistake.object}: {mistake.path}"
        yield f"  {mistake.message}"
        yield f"  fix: {mistake.fix}"
    wrong = sum(not mistake.warning for mistake in mistakes)
    yield f"{number} quotas and profiles: {wrong} errors, {len(mistakes) - wrong} warnings"


def _asking(path: str | None, seen: snapshot.Snapshot) -> dict[str, int]:
    """Count the pods that ask for a feature our scheduler lacks, by feature."""
    if path is None:
        gangs = [unserved.gang_of(pod.labels) for pod in seen.pods]
    else:
        from koordlet.kubeapi import manifests  # noqa: PLC0415 -- YAML, 8 ms, with --pods alone

        gangs = list(unserved.gangs_of(manifests.load(path)))
    count = sum(map(bool, gangs))
    return {"gang": count} if count else {}


def _refused(asking: Mapping[str, int]) -> list[str]:
    return [
        f"scheduler     pods that name a {what}: {count}; koordlet's scheduler refuses such pods"
        f" while they wait for a node ({unserved.OPTION} places them)"
        for what, count in sorted(asking.items())
    ]


def document(seen: snapshot.Snapshot, why: str, choice: sources.Choice) -> dict[str, object]:
    """The machine's abilities."""
    return {
        "mode": "observe" if why else "enforce",
        "why": why,
        "cgroups": seen.layout.version.value,
        "hierarchies": [
            {
                "mount": hierarchy.mount,
                "version": "v2" if hierarchy.unified else "v1",
                "controllers": sorted(hierarchy.controllers),
                "writable": hierarchy.writable,
            }
            for hierarchy in seen.layout.hierarchies
        ],
        "cpus": {
            "online": str(seen.topology.online),
            "count": len(seen.topology.online),
            "isolated": str(seen.topology.isolated),
        },
        "ratios": None
        if (ratios := seen.node.ratios) is None
        else documents.fields(ratios, "normalization amplification reason"),
        "standalone": choice.standalone,
        "sources": documents.each(seen.sources, "name ok problem"),
        "sourcesWhy": list(choice.why),
        "workloads": documents.each(seen.pods, "workload=key match cgroup=group"),
        "unmanaged": [
            {"name": pod.name, "containers": len(pod.containers), "cgroup": pod.group}
            for pod in seen.unmanaged
        ],
        "unsupported": documents.each(seen.unsupported, "feature why"),
        "warnings": list(seen.topology.warnings),
    }


def lines(seen: snapshot.Snapshot, why: str, choice: sources.Choice) -> list[str]:
    """Format the document for people."""
    text = [
        f"mode          {'observe: ' + why if why else 'enforce'}",
        f"cpus          {len(seen.topology.online)} online ({seen.topology.online})",
        *([_ISOLATED.format(seen.topology.isolated)] if seen.topology.isolated else ()),
        *([f"cpu ratio     {ratios.reason}"] if (ratios := seen.node.ratios) is not None else ()),
        f"cgroups       {_cgroups(seen.layout)}",
    ]
    for hierarchy in seen.layout.hierarchies:
        names = ",".join(sorted(hierarchy.controllers)) or "no controllers"
        state = "" if hierarchy.writable else f"  ({hierarchy.why})"
        text.append(f"  {'v2' if hierarchy.unified else 'v1'} {hierarchy.mount}  {names}{state}")
    text.append(f"sources       {'standalone' if choice.standalone else 'Kubernetes'}")
    text += (f"  {reason}" for reason in choice.why)
    for source in seen.sources:
        state = "ok" if source.ok else f"FAILED: {source.problem}"
        text.append(f"  {source.name}: {state}")
    if not seen.pods:
        text.append("workloads     none declared: there is nothing to enforce")
    for pod in seen.pods:
        where = pod.group or f"not running ({pod.match})"
        text.append(f"workload      {pod.key} {pod.qos.value}: {where}")
    text += (f"unmanaged     {pod.group!s}" for pod in seen.unmanaged[:_SHOWN])
    if len(seen.unmanaged) > _SHOWN:
        text.append(f"unmanaged     and {len(seen.unmanaged) - _SHOWN} more")
    text += (f"unsupported   {gap.feature}: {gap.why}" for gap in seen.unsupported)
    text += (f"warning       {warning}" for warning in seen.topology.warnings)
    return text


def _cgroups(layout: cgroup.Layout) -> str:
    holder = layout.holder("cpuset")
    if layout.version is cgroup.Version.NONE:
        return "none mounted"
    where = f", cpuset on {'v2' if holder.unified else 'v1'}" if holder is not None else ""
    return f"{layout.version.value}{where}"
