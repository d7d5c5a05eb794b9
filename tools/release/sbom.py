"""The list of parts in the form of SPDX 2.3, as JSON.

Covers: one document for each artefact that has parts of others. Does not cover: which (``parts``).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tools.release import parts

_ROOT = "SPDXRef-koordlet"


def text(
    artefact: str, version: str, sha256: str, several: Sequence[parts.Part], epoch: int
) -> str:
    """The document of an artefact; the same parts give the same text."""
    listed = sorted(several, key=lambda part: part.url)
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{artefact} {sha256}")
    own = parts.Part("koordlet", version, f"pkg:pypi/koordlet@{version}", "Apache-2.0", sha256)
    body = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": artefact,
        "documentNamespace": f"urn:uuid:{name}",
        "creationInfo": {"created": created, "creators": ["Tool: koordlet-release"]},
        "packages": [_package(own, _ROOT)]
        + [_package(part, f"SPDXRef-{number}") for number, part in enumerate(listed, 1)],
        "relationships": [_relation("SPDXRef-DOCUMENT", "DESCRIBES", _ROOT)]
        + [_relation(_ROOT, "CONTAINS", f"SPDXRef-{n}") for n in range(1, len(listed) + 1)],
    }
    return json.dumps(body, indent=1) + "\n"


def _package(part: parts.Part, name: str) -> dict[str, Any]:
    sums = [{"algorithm": "SHA256", "checksumValue": part.sha256}] if part.sha256 else []
    return {
        "SPDXID": name,
        "name": part.name,
        "versionInfo": part.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": part.licence or "NOASSERTION",
        "licenseDeclared": part.licence or "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "checksums": sums,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": part.url,
            }
        ],
    }


def _relation(element: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": other}
