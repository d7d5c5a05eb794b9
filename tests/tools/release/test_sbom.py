"""The list of parts names each with version, licence and origin, and is the same each time."""

from __future__ import annotations

import json
import re
import sysconfig
from pathlib import Path

from tools.release import commands, parts, sbom

CONTROL = "Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\nDescription: x\n y\n"
SITE = Path(sysconfig.get_paths()["purelib"])


def runtime() -> list[parts.Part]:
    """What the agent runs with, as it is installed here."""
    lock = (commands.REPO / "requirements.lock").read_text()
    names = {name.lower() for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    return [part for part in parts.of_python(SITE) if part.name.lower().replace("_", "-") in names]


def test_each_dependency_has_a_licence_of_spdx() -> None:
    """No part is shipped whose licence nobody has named."""
    several = runtime()
    assert len(several) > 15
    assert [part.name for part in several if not part.licence] == []


def test_a_debian_package_is_named_by_its_control_file() -> None:
    """With the checksum of its archive."""
    part = parts.of_debian(CONTROL, "ab" * 32)
    assert part.url == "pkg:deb/debian/libc6@2.36-9?arch=amd64"
    assert (part.name, part.version, part.sha256) == ("libc6", "2.36-9", "ab" * 32)


def test_the_document_holds_together() -> None:
    """Each relation names packages of the document; order of the parts and time do not count."""
    several = [parts.of_debian(CONTROL, "ab" * 32), *runtime()]
    text = sbom.text("koordlet.tar", "1.0", "cd" * 32, several, 0)
    document = json.loads(text)
    known = {package["SPDXID"] for package in document["packages"]} | {document["SPDXID"]}
    related = {r[key] for r in document["relationships"] for key in _ENDS}

    assert text == sbom.text("koordlet.tar", "1.0", "cd" * 32, several[::-1], 0)
    assert related == known
    assert len(document["packages"]) == len(several) + 1
    assert document["spdxVersion"] == "SPDX-2.3"


_ENDS = ("spdxElementId", "relatedSpdxElement")
