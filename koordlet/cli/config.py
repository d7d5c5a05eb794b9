"""``koordlet config``: the effective configuration, and where each value comes from.

Covers: table, JSON and YAML output of the configuration, the JSON schema.
Does not cover: how the sources are read and merged (``config``).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping

from koordlet.cli import options, output
from koordlet.config import layers, loader, places, plain, schema, sourced
from koordlet.model import nodeslo
from koordlet.report import strategies_json

EXAMPLES = """\
koordlet config                              every value with its origin
koordlet config --config site.yaml -o yaml   as a file, origins as comments
KOORDLET_MODE=observe koordlet config -o json
kubectl get nodeslo n1 -o yaml > slo.yaml; koordlet config --pods slo.yaml
koordlet config --kubelet-config /var/lib/kubelet/config.yaml   are our thresholds the earlier ones?
koordlet config --schema > koordlet.schema.json
"""

_UNJUDGED = (
    "policies.node_pressure.act: beside a kubelet a threshold is acted on that is earlier than the"
    " kubelet's; name its file with --kubelet-config to have them compared here"
)
#: Letters of a value that are shown on the narrowest terminal, and on any; the narrowest keys.
_LEAST_SHOWN, _MAX_SHOWN, _LEAST_KEYS = 20, 60, 24
#: Words that a YAML parser of either version may take for something else than text.
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*\Z")
_OPTIONS = {
    "--pods FILE": "with the NodeSLO or the ConfigMap slo-controller-config of this file, as"
    " kubectl prints them",
    "--cluster": "ask the API server of the configuration for them",
    "--schema": "print the JSON schema of the file",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.eviction(parser)
    options.output(parser, ("table", "json", "yaml"))
    options.declare(parser, _OPTIONS)


def run(args: argparse.Namespace) -> int:
    """Print it; errors of the configuration leave as ``ConfigError``."""
    if args.schema:
        sys.stdout.write(json.dumps(schema.json_schema(), indent=2) + "\n")
        return 0
    effective = loader.load(args.config, os.environ, options.eviction_flags(args))
    node_slo = cluster(args, effective)
    if args.output == "json":
        more = {} if node_slo is None else {"cluster": strategies_json.document(node_slo)}
        output.print_json({**document(effective), **more})
        return 0
    lines = list(yaml_lines(effective) if args.output == "yaml" else table_lines(effective))
    if node_slo is not None:
        lines += cluster_lines(node_slo, comments=args.output == "yaml")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    for warning in effective.warnings:
        sys.stderr.write(f"warning: {output.visible(warning)}\n")
    section, kubelet = effective.config.policies.node_pressure, effective.config.kubelet
    acts = section.act is True and section.mode == "enforce" and kubelet.mode != "off"
    if acts and kubelet.config_file is None:
        sys.stderr.write(f"note: {_UNJUDGED}\n")
    return 0


def cluster(args: argparse.Namespace, effective: sourced.Effective) -> nodeslo.NodeSlo | None:
    """Ask the cluster for the settings of this node, where it can be asked."""
    if args.pods is not None:
        from koordlet.cli import node_source  # noqa: PLC0415 -- only who gives a file pays

        return node_source.listed(args.pods).slo
    if args.cluster:
        from koordlet.agent import sources  # noqa: PLC0415 -- only who asks pays
        from koordlet.host.fs import live_host  # noqa: PLC0415 -- loads ctypes, which only this needs

        observed = sources.once(effective.config, live_host.LiveHost())
        if observed is None:
            sys.stderr.write("note: nobody was asked: no cluster is configured or found here\n")
        output.warn(sources.unheard(observed))
        return observed.slo if observed is not None else None
    return None


def cluster_lines(node_slo: nodeslo.NodeSlo, *, comments: bool) -> list[str]:
    """List the settings of the cluster, which override those of the file."""
    rows = [
        (key, _short(_scalar(value)), origin)
        for key, value, origin in strategies_json.rows(node_slo)
    ]
    lines = ["", *output.table(rows, head=("KEY OF THE CLUSTER", "VALUE", "ORIGIN"))]
    lines += [f"problem: {output.visible(problem)}" for problem in node_slo.problems]
    return [f"# {line}".rstrip() for line in lines] if comments else lines


def _short(text: str) -> str:
    # One giant annotation must not push the origins off the screen.
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def document(effective: sourced.Effective) -> dict[str, object]:
    """The machine-readable form, without its version."""
    sections = plain.document(effective.config)
    paths = [places.dotted(loc) for loc, _ in layers.leaves(sections)]
    return {
        "config": sections,
        "origins": {path: effective.origin(path) for path in paths},
        "warnings": list(effective.warnings),
    }


def table_lines(effective: sourced.Effective) -> list[str]:
    """Format one line for each value: path, value, origin."""
    rows = []
    for loc, value in layers.leaves(plain.document(effective.config)):
        path, text = places.dotted(loc), _scalar(value)
        rows.append((path, _short(text), effective.origin(path)))
    return _fitted(rows, output.width())


def _fitted(rows: list[tuple[str, str, str]], room: int) -> list[str]:
    """A table whose origins are whole: values are cut, then an origin has its own line.

    The column of keys leaves room for the others; a longer key takes some of its value's.
    """
    head = ("KEY", "VALUE", "ORIGIN")
    keys, values, origins = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    keys = min(keys, max(_LEAST_KEYS, room - _LEAST_SHOWN - origins - 4))
    values = max(_LEAST_SHOWN, min(values, room - keys - origins - 4))
    lines = []
    for key, value, origin in (head, *rows):
        shown = value if len(value) <= values else f"{value[: values - 1]}…"
        rest = max(len(shown), keys + values - max(keys, len(key)))
        left = f"{key:<{keys}}  {shown:<{rest}}"
        line = f"{left}  {output.visible(origin)}"
        if len(line) <= room:
            lines.append(line)
        else:
            lines += [left.rstrip(), f"{output.visible(origin):>{room}}"]
    return lines


def yaml_lines(effective: sourced.Effective) -> Iterator[str]:
    """A file that says the same, each value with its origin as a comment."""
    yield from _block(plain.document(effective.config), (), effective.origin, "")


def _block(
    section: Mapping[str, object], loc: places.Loc, origin: Callable[[str], str], indent: str
) -> Iterator[str]:
    for key, value in section.items():
        yield from _entry(f"{indent}{_scalar(key)}:", value, (*loc, key), origin, f"{indent}  ")


def _entry(
    head: str, value: object, loc: places.Loc, origin: Callable[[str], str], indent: str
) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield head
        yield from _block(value, loc, origin, indent)
    elif isinstance(value, list) and value:
        yield head
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                where = output.visible(origin(places.dotted((*loc, index))))
                yield f"{indent}- {_scalar(item)}  # {where}"
                continue
            lines = list(_block(item, (*loc, index), origin, f"{indent}  "))
            yield f"{indent}- {lines[0].lstrip()}"
            yield from lines[1:]
    else:
        yield f"{head} {_scalar(value)}  # {output.visible(origin(places.dotted(loc)))}"


def _scalar(value: object) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _RESERVED:
        return value
    # JSON is YAML, apart from characters beyond the 16-bit plane: those are written as they are.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
