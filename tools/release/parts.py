"""What is in a release beside koordlet: name, version, licence and origin of each part.

Covers: Python packages as installed, Debian packages as unpacked, the licence texts of both.
Does not cover: how a list of them is written (``sbom``).
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from koordlet.model.record import dataclass

#: How packages spell what SPDX calls otherwise; the rest is taken as it is.
_SPELLED = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "MIT License": "MIT",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
}
#: What only the text of a package's licence says.
_BY_TEXT = {"google-re2": "BSD-3-Clause"}
_SPDX = re.compile(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*")


@dataclass(frozen=True, slots=True)
class Part:
    """One package of somebody else."""

    name: str
    version: str
    #: ``pkg:pypi/...`` or ``pkg:deb/debian/...``.
    url: str
    #: An expression of SPDX; empty: only the text says it.
    licence: str
    #: Of the archive that it came in; empty: unknown.
    sha256: str = ""


def of_python(site: Path) -> Iterator[Part]:
    """The distributions of a folder of packages, by name."""
    every = importlib.metadata.distributions(path=[str(site)])
    for distribution in sorted(every, key=lambda distribution: distribution.name.lower()):
        name = re.sub(r"[-_.]+", "-", distribution.name).lower()
        url = f"pkg:pypi/{name}@{distribution.version}"
        licence = _licence(distribution.metadata) or _BY_TEXT.get(name, "")
        yield Part(name, distribution.version, url, licence)


def _licence(metadata: importlib.metadata.PackageMetadata) -> str:
    known_fields = ("License-Expression", "License")
    fields = [metadata[name] for name in known_fields if name in metadata]
    fields += [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    for text in fields:
        known = _SPELLED.get(text, text)
        if _SPDX.fullmatch(known):
            return known
    return ""


def of_debian(status: str, sha256: str) -> Part:
    """A package by its control file."""
    fields = dict(re.findall(r"^(\w[\w-]*): (.*)$", status, re.MULTILINE))
    name, version, machine = fields["Package"], fields["Version"], fields["Architecture"]
    url = f"pkg:deb/debian/{name}@{version}?arch={machine}"
    return Part(name, version, url, "", sha256)
