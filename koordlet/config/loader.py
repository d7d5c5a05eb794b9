"""The effective configuration: all sources read, merged, validated, limited.

Covers: the order of the steps, the default path, what an empty or a missing file means.
Does not cover: reading again later (``reloader``).
"""

from __future__ import annotations

import gc
import sys
import typing
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from pydantic import ValidationError

from koordlet.config import (
    catalog,
    environment,
    file_source,
    layers,
    limits,
    parcel,
    places,
    plain,
    problems,
    schema,
    sections,
    sourced,
)
from koordlet.model import earlier, errors, thresholds

if typing.TYPE_CHECKING:
    from koordlet.config import yaml_source

_THRESHOLDS = ("policies", "node_pressure")
_FIX = "choose a larger threshold, or leave policies.node_pressure.act out"


def load(
    path: str | None, env: Mapping[str, str], flags: Mapping[str, object]
) -> sourced.Effective:
    """Read, merge and validate; ``ConfigError`` names every problem of the first bad source.

    ``path`` is what the operator named; ``None`` is the default path, which need not exist.
    ``flags`` maps dotted paths to values, plain or as ``sourced.Flag``.
    """
    return from_text(*file_source.configured(path), env, flags)


def from_text(
    text: str | None,
    path: str,
    env: Mapping[str, str],
    flags: Mapping[str, object],
    *,
    kept: bool = False,
) -> sourced.Effective:
    """Load like ``load``, from the text of the file; ``None`` is no file.

    ``kept``: the file had content, so that it has none now is refused.
    """
    given: list[layers.Layer] = []
    warnings: list[str] = []
    layer = None if text is None else file_layer(text, path)
    if kept and layer is None:
        what = "the file vanished" if text is None else "the file became empty"
        fix = "restore the file, or restart the agent to return to the defaults"
        raise errors.ConfigError(f"{what}: the last content stays in force", culprit=path, fix=fix)
    if text is not None:
        if layer is None:
            warnings.append(f"{path}: the file is empty: all values are defaults")
        else:
            given.append(layer)
    given += [environment.layer(env), flag_layer(flags)]
    for layer in (changed for changed in given[-2:] if changed.data):
        _check(layer.data, layer.origins, layer.name.name.lower())
    resolved = resolve(given, path if text is not None else None, warnings)
    return replace(resolved, text=text)


def resolve(
    given: Iterable[layers.Layer], path: str | None = None, warnings: Iterable[str] = ()
) -> sourced.Effective:
    """The sum of layers that are each valid by themselves."""
    merged = layers.merge(given)
    config = _check(merged.data, merged.origins, "configuration")
    config, cuts = limits.apply(config)
    record = config.record()
    origins = {leaf: merged.origin(leaf) for leaf, _ in layers.leaves(plain.document(record))}
    for cut in cuts:
        origins[cut.loc] = f"{merged.origin(cut.limit)} ({places.dotted(cut.limit)})"
    shown = {
        places.dotted(loc): origin for loc, origin in origins.items() if origin != sourced.BUILT_IN
    }
    warned = [*warnings, *map(str, cuts), *_ignored(config, shown), *_late(config, shown)]
    # Whoever reads it cannot tell the record from the models (``plain``).
    return sourced.Effective(cast("schema.Config", record), shown, tuple(warned), path)


def file_layer(text: str, path: str) -> layers.Layer | None:
    """The layer of the file; ``None`` where it holds nothing but comments."""
    from koordlet.config import (  # noqa: PLC0415 -- YAML, 13 ms that a start without a file does without
        kubelet_file,
        yaml_source,
    )

    document = yaml_source.parse(text, path)
    if kubelet_file.is_one(document.data):
        document = kubelet_file.translated(
            document, {"apiVersion": schema.API_VERSION, "kind": schema.KIND}
        )
    refused = list(document.problems)
    data = document.data
    if data is None and not refused:
        return None
    if isinstance(data, dict) and document.complete:
        refused += _header(data, document, path) or _problems_of(data, document, path)
    elif not refused:
        message = f"expected a section with keys, found {problems.noun(data)}"
        fix = f"begin with apiVersion: {schema.API_VERSION}"
        refused.append(errors.ConfigError(message, culprit=_locate(document, path, ()), fix=fix))
    problems.raise_any(refused, path)
    origins = {loc: f"{path}:{mark.line}" for loc, mark in document.values.items()}
    return layers.Layer(layers.Name.FILE, data if isinstance(data, dict) else {}, origins)


def flag_layer(flags: Mapping[str, object]) -> layers.Layer:
    """The layer of the command line."""
    known = {field.path: field for field in catalog.fields()}
    built = layers.Layer(layers.Name.FLAGS)
    for path, given in flags.items():
        flag = given if isinstance(given, sourced.Flag) else sourced.Flag(given, "command line")
        if path not in known:
            message = f"a flag sets the unknown field {path}"
            raise errors.BugError(message, fix=errors.suggest(path, known, "known"))
        value = flag.value
        if isinstance(value, str):
            value = environment.typed(known[path], value)
        built.put(known[path].loc, value, flag.spelling)
    return built


def _header(
    data: dict[str, object], document: yaml_source.Document, path: str
) -> list[errors.ConfigError]:
    """Another kind of file gets one error, not one for each of its keys."""
    wanted = {"apiVersion": schema.API_VERSION, "kind": schema.KIND}
    refused = []
    for key, right in wanted.items():
        if data.get(key) == right:
            continue
        message = (
            f"expected {right}, found {problems.noun(data[key])}" if key in data else "missing"
        )
        culprit = f"{_locate(document, path, (key,))}: {key}"
        fix = f"write {key}: {right}"
        refused.append(errors.ConfigError(message, culprit=culprit, fix=fix))
    return refused


def _problems_of(
    data: dict[str, object], document: yaml_source.Document, path: str
) -> list[errors.ConfigError]:
    try:
        schema.validate(data)
    except ValidationError as error:
        return problems.from_validation(
            error.errors(include_url=False),
            lambda loc, of_key: _locate(document, path, loc, of_key=of_key),
        )
    return []


def _locate(
    document: yaml_source.Document, path: str, loc: places.Loc, *, of_key: bool = False
) -> str:
    """``FILE:LINE:COLUMN`` of a value, or of what it is missing from."""
    marks = document.keys if of_key else document.values
    while loc and loc not in marks:
        loc, marks = loc[:-1], document.values
    mark = marks.get(loc)
    return f"{path}:{mark.line}:{mark.column}" if mark else path


def _check(data: object, origins: Mapping[places.Loc, str], source: str) -> schema.Config:
    try:
        return schema.validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        refused = problems.from_validation(details, lambda loc, _: _origin(origins, loc) or source)
    problems.raise_any(refused, source)
    raise errors.BugError("a failed validation names no problem", culprit=source)


def _origin(origins: Mapping[places.Loc, str], loc: places.Loc) -> str | None:
    """Origin of this value, or of the text that contains it."""
    return next(
        (origins[part] for end in range(len(loc), 0, -1) if (part := loc[:end]) in origins), None
    )


def _late(config: schema.Config, origins: Mapping[str, str]) -> list[str]:
    """Warnings about undecided thresholds; ``ConfigError`` for those that come too late.

    Beside those of the kubelet's file; its own word at run time: ``policy.eviction.kubelet_owned``.
    """
    path, section = config.kubelet.config_file, config.policies.node_pressure
    if path is None:
        return []
    from koordlet.config import kubelet_file  # noqa: PLC0415 -- YAML: 13 ms of a start that names no file

    theirs = thresholds.parse(replace(kubelet_file.texts(path), enforce_pods=False))
    if not section.act or section.mode == "off":
        return []
    refused, unsure = [], []
    for threshold in thresholds.parse(replace(thresholds.Texts.of(section), enforce_pods=False)):
        rival, certain = earlier.rival(threshold, theirs, None)
        if rival is None:
            continue
        text = earlier.words(threshold, rival)
        if certain:
            key = "evictionHard" if threshold.hard else "evictionSoft"
            where = places.dotted((*_THRESHOLDS, key, threshold.signal))
            culprit = f"{origins.get(where, sourced.BUILT_IN)}: {where}"
            refused.append(errors.ConfigError(f"{text} ({path})", culprit=culprit, fix=_FIX))
        else:
            unsure.append(
                f"whether {threshold.signal}<{threshold.value.text} is earlier than the kubelet's"
                f" {rival.value.text} ({path}) depends on the machine"
            )
    problems.raise_any(refused, path)
    return unsure


def _ignored(config: schema.Config, origins: Mapping[str, str]) -> Iterable[str]:
    section = config.policies.reserved_cpus
    if section.cpus is not None and section.quantity is not None:
        yield "policies.reserved_cpus.quantity is ignored because cpus is set"
    names: dict[object, str] = {}
    for workload in config.workloads:
        if (owner := names.setdefault(workload.match, workload.name)) != workload.name:
            yield f"workload {workload.name}: its cgroup is that of {owner}, which alone has it"
    for field in catalog.fields() if origins else ():
        if sections.DEPRECATED in field.info.metadata and field.path in origins:
            yield f"{origins[field.path]}: {field.path} {sections.DEPRECATED}: remove it"


def answer(asked: parcel.Question) -> parcel.Answer:
    """The effective configuration, or what is wrong with it."""
    try:
        return from_text(asked.text, asked.path, asked.env, asked.flags, kept=asked.kept)
    except errors.ConfigError as error:
        return error


def main() -> None:
    """One question, one answer."""
    gc.disable()  # it ends before there is garbage worth looking for
    asked = parcel.question(sys.stdin.buffer.read())
    sys.stdout.buffer.write(parcel.of_answer(answer(asked)))
