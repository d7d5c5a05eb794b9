"""``koordlet resctrl``: cache ways, memory bandwidth, and who owns them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from koordlet.agent import bootstrap
from koordlet.cli import options, output
from koordlet.cli import plan as plan_command
from koordlet.model import resctrl, schemata, snapshot
from koordlet.report import resctrl_json, resctrl_svg

EXAMPLES = """\
koordlet resctrl                        this machine
koordlet resctrl -o svg > ways.svg      as a picture
koordlet resctrl --root machine.tar.gz -o json
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.root(parser)
    options.output(parser, ("table", "json", "svg"))
    options.state(parser)


def run(args: argparse.Namespace) -> int:
    """Look once, and print. A machine without resctrl says why; that is no error."""
    line = bootstrap.open_tick(args, bootstrap.host(args), bootstrap.effective(args, {}))
    plan_command.hold_claims(args, line)
    seen = line.look()
    return output.show(
        args.output,
        resctrl_json.render(seen),
        lines(seen),
        lambda: resctrl_svg.render(
            seen.resctrl or resctrl.Resctrl(mount=""), resctrl_json.labels(seen)
        ),
    )


def lines(seen: snapshot.Snapshot) -> list[str]:
    """The picture in letters: a row for each group, a column for each way."""
    control = seen.resctrl
    text: list[str] = []
    if control is not None:
        shown = f" ({','.join(control.options)})" if control.options else ""
        taken = sum(group.takes_class for group in control.groups.values())
        used = f"{taken} of {control.hardware.most_groups} classes of service"
        text.append(f"resctrl at {control.mount}{shown}, {used}")
        labels = resctrl_json.labels(seen)
        text += [
            line for cache in control.hardware.caches for line in _cache(control, cache, labels)
        ]
        text += [
            line
            for bandwidth in control.hardware.bandwidths
            for line in _bandwidth(control, bandwidth, labels)
        ]
    for gap in seen.unsupported:
        if gap.feature.partition(".")[0] == "resctrl":
            text.append(f"! not supported here: {gap.feature}: {gap.why}")
    return text


def _cache(control: resctrl.Resctrl, cache: resctrl.Cache, labels: Mapping[str, str]) -> list[str]:
    bits = cache.mask.bit_length()
    text = []
    for domain in cache.domains:
        rows = []
        for group in control.groups.values():
            mask = schemata.parse(group.schemata).get(cache.name, domain) or 0
            rows.append((labels[group.name], _ways(mask, bits, "·█"), f"{mask:x}"))
        if cache.shareable:
            shared = _ways(cache.shareable, bits, " X")
            rows.append(("(hardware)", shared, f"{cache.shareable:x}"))
        head = (f"{cache.name} {domain}", "WAYS", "MASK")
        text += ["", *output.table(rows, head=head)]
    return text


def _ways(mask: int, bits: int, signs: str) -> str:
    """A sign for each way, the highest first: the first of the two where the bit is not set."""
    return "".join(signs[mask >> way & 1] for way in reversed(range(bits)))


def _bandwidth(
    control: resctrl.Resctrl, bandwidth: resctrl.Bandwidth, labels: Mapping[str, str]
) -> list[str]:
    heads = [str(domain) for domain in bandwidth.domains]
    rows = []
    for group in control.groups.values():
        values = schemata.parse(group.schemata)
        cells = [values.get(bandwidth.name, domain) for domain in bandwidth.domains]
        shown = ["?" if cell is None else str(cell) for cell in cells]
        rows.append((labels[group.name], *shown))
    return ["", *output.table(rows, head=(f"{bandwidth.name} ({bandwidth.unit.value})", *heads))]
