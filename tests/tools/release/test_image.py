"""The archive is an image: digests are those of its bytes, and it runs what the Dockerfile runs."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import koordlet
from tools.release import commands, debian, image, layers

DOCKERFILE = (commands.REPO / "Dockerfile").read_text()


def archive(tmp_path: Path) -> dict[str, bytes]:
    """The files of an image of one small layer."""
    (tmp_path / "etc").mkdir()
    data = image._archive([layers.layer(tmp_path, 0)], koordlet.__version__, 0, "arm64")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = {entry.name: tar.extractfile(entry) for entry in tar.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    """What a descriptor names, as it names it."""
    data = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert descriptor["size"] == len(data)
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    return data


def test_every_descriptor_names_its_bytes(tmp_path: Path) -> None:
    """From the index to the layers, for runtimes and for docker alike."""
    files = archive(tmp_path)
    [listed] = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(files, listed))
    config = json.loads(blob(files, manifest["config"]))
    packed = [blob(files, layer) for layer in manifest["layers"]]
    [docker] = json.loads(files["manifest.json"])

    assert len(packed) == len(config["rootfs"]["diff_ids"]) == len(config["history"])
    assert {docker["Config"], *docker["Layers"]} <= files.keys()
    assert (config["architecture"], config["os"]) == ("arm64", "linux")
    assert listed["annotations"]["io.containerd.image.name"].endswith(
        f"/koordlet:{koordlet.__version__}"
    )


def test_it_runs_what_the_dockerfile_runs(tmp_path: Path) -> None:
    """The same words, in the same place."""
    files = archive(tmp_path)
    manifest = json.loads(blob(files, json.loads(files["index.json"])["manifests"][0]))
    config = json.loads(blob(files, manifest["config"]))["config"]
    entrypoint, command = (
        json.loads(re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)[0])
        for name in ("ENTRYPOINT", "CMD")
    )

    assert (config["Entrypoint"], config["Cmd"]) == (entrypoint, command)
    assert f"{image.PREFIX}/bin:" in config["Env"][0]
    assert "PYTHONDONTWRITEBYTECODE=1" in config["Env"]


def test_the_base_has_no_shell_and_no_package_manager() -> None:
    """Nothing that somebody who got in could use; and what the manifests' init container runs."""
    assert not {"bash", "dash", "busybox", "dpkg", "apt", "coreutils"} & set(debian.PACKAGES)
    assert {"openssl", "python3.11-minimal"} <= set(debian.PACKAGES)
    assert len(debian.PACKAGES) == len(set(debian.PACKAGES))
