"""Files with one line per device: koordlet's lines, writing and restoring them.

Covers: ``io.max``, ``io.weight``, ``io.cost.*``, ``blkio.throttle.*`` and what else is ``Keyed``.
Does not cover: whether and when (``apply.planner``, ``apply.executor``).

Rules:
1. The kernel takes one line per write, so several devices are several writes; a refused line does
   not affect the others.
2. Only devices that koordlet wrote are compared and restored.
3. A device that is no longer wanted goes back to its original; the file's others stay.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import replace

from koordlet.apply import kinds
from koordlet.host.fs import root
from koordlet.model import action, forms, knob
from koordlet.state import journal

#: By name of the knob.
FORMS = {n: row.form for n, row in knob.TABLE.items() if isinstance(row.form, forms.Keyed)}


def form_of(wanted: action.Action) -> forms.Keyed | None:
    """The form of a file of this kind; ``None`` for any other action."""
    return FORMS.get(wanted.knob) if isinstance(wanted, action.WriteFile) else None


def write(host: root.HostRoot, wanted: action.WriteFile) -> tuple[str, str]:
    """Write each line; returns koordlet's devices as read back, and refusals."""
    lines = wanted.value.splitlines()
    answers = host.write_each(host.at(wanted.target), [f"{line}\n".encode() for line in lines])
    refused = [(line, answer) for line, answer in zip(lines, answers, strict=True) if answer != 0]
    if len(refused) == len(lines):
        raise OSError(refused[0][1], os.strerror(refused[0][1]), wanted.target)
    try:
        text = host.text(host.at(wanted.target))
    except OSError as error:
        return wanted.value, f"written, but cannot be read back: {error.strerror}"
    ours = forms.devices(wanted.value)
    shown = "\n".join(line for line in text.splitlines() if line.partition(" ")[0] in ours)
    if refused:
        refusals = "; ".join(f"{line}: {errno.errorcode.get(why, why)}" for line, why in refused)
        return shown, f"refused: {refusals}"
    return shown, "" if kinds.same(
        wanted, wanted.value, text
    ) else f"wrote {wanted.value!r}, reads {text!r}"


def complete(write: action.Action, entry: journal.Entry | None) -> action.Action:
    """A wanted file, with lines that restore devices no longer wanted."""
    if entry is None or not isinstance(write, action.WriteFile) or write.knob not in FORMS:
        return write
    form = FORMS[write.knob]
    wanted = forms.devices(write.value)
    ours = forms.devices("\n".join(entry.values))
    dropped = {device: fields for device, fields in ours.items() if device not in wanted}
    lines = _originals(form, dropped, forms.devices(entry.original or ""))
    return replace(write, value="\n".join((write.value, *lines))) if lines else write


def undo(entry: journal.Entry, write: action.WriteFile, current: str) -> tuple[str, str]:
    """Lines that restore koordlet's devices, and devices that another program wrote since."""
    form = form_of(write) or forms.Keyed()
    before = forms.devices(entry.original or "")
    back: list[str] = []
    foreign = []
    for device, texts in _ours(entry).items():
        line = _originals(form, {device: texts[-1]}, before)
        if not line or form.same(line[0], current):
            continue
        if _stands(form, device, texts, current):
            back += line
        else:
            foreign.append(device)
    return "\n".join(back), ", ".join(foreign)


def original(entry: journal.Entry, write: action.WriteFile, was: str) -> str:
    """The new original after another program changed some devices."""
    form = form_of(write) or forms.Keyed()
    ours = {d for d, texts in _ours(entry).items() if _stands(form, d, texts, was)}
    kept = [line for line in was.splitlines() if line.partition(" ")[0] not in ours]
    old = (entry.original or "").splitlines()
    return "\n".join((*kept, *(line for line in old if line.partition(" ")[0] in ours)))


def _ours(entry: journal.Entry) -> dict[str, list[Mapping[str, str]]]:
    """Values that koordlet wrote per device."""
    by_device: dict[str, list[Mapping[str, str]]] = {}
    for text in entry.values:
        for device, fields in forms.devices(text).items():
            by_device.setdefault(device, []).append(fields)
    return by_device


def _stands(form: forms.Keyed, device: str, texts: list[Mapping[str, str]], current: str) -> bool:
    now = forms.devices(current).get(device, {})
    return any(all(now.get(n, form.unset) == v for n, v in each.items()) for each in texts)


def _originals(
    form: forms.Keyed,
    ours: Mapping[str, Mapping[str, str]],
    before: Mapping[str, Mapping[str, str]],
) -> list[str]:
    lines = []
    for device, fields in ours.items():
        old = before.get(device, {})
        if not old and form.reset:
            lines.append(f"{device} {form.reset}")
            continue
        if all(old.get(name, form.unset) == value for name, value in fields.items()):
            continue
        shown = ((name, old.get(name, form.unset)) for name in fields)
        words = (f"{name}={value}" if name else value for name, value in shown)
        lines.append(" ".join((device, *words)))
    return lines
