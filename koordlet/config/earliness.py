"""Compares eviction thresholds with those of the kubelet's configuration file.

Covers: what is refused at once, what cannot be told before the machine is known.
Does not cover: comparing two thresholds (``model.earlier``), the kubelet's own word at run time
(``policy.eviction.kubelet_owned``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.config import kubelet_file, places, problems, schema, sourced
from koordlet.model import earlier, errors, thresholds

_WHERE = ("policies", "node_pressure")
_FIX = "choose a larger threshold, or leave policies.node_pressure.act out"


def check(config: schema.Config, origins: Mapping[str, str]) -> list[str]:
    """Warnings about undecided thresholds; ``ConfigError`` for those that come too late."""
    path, section = config.kubelet.config_file, config.policies.node_pressure
    if path is None:
        return []
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
            where = places.dotted((*_WHERE, key, threshold.signal))
            culprit = f"{origins.get(where, sourced.BUILT_IN)}: {where}"
            refused.append(errors.ConfigError(f"{text} ({path})", culprit=culprit, fix=_FIX))
        else:
            unsure.append(
                f"whether {threshold.signal}<{threshold.value.text} is earlier than the kubelet's"
                f" {rival.value.text} ({path}) depends on the machine"
            )
    problems.raise_any(refused, path)
    return unsure
