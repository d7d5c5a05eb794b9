"""One version everywhere, the notes of that version, a chart that Helm can take."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import yaml

import koordlet
from tools.release import __main__ as release
from tools.release import commands, environment, parts

LOG = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.0.0] - 2026-01-01\n\n- old\n"


def test_the_version_is_of_one_place() -> None:
    """Read from the package, which is not imported for it; images in manifests have it too."""
    assert environment.version() == koordlet.__version__


def test_notes_are_those_of_the_version() -> None:
    """Of one that is not released yet, what waits for it; none at all is an error."""
    assert release.notes(LOG, "1.0.0") == "# koordlet 1.0.0\n\n- old\n"
    assert release.notes(LOG, "2.0.0") == "# koordlet 2.0.0\n\n- new\n"
    with pytest.raises(commands.BuildError):
        release.notes("# Changelog\n", "1.0.0")


def test_the_chart_is_packed_with_what_its_links_name(tmp_path: Path) -> None:
    """Below its name, definitions and all; twice the same."""
    path = release._chart(tmp_path, "1.0.0", 0)
    first = path.read_bytes()
    with tarfile.open(path) as tar:
        names = {entry.name: entry for entry in tar.getmembers()}
        file = tar.extractfile("koordlet/Chart.yaml")
        assert file is not None
        assert yaml.safe_load(file.read())["name"] == "koordlet"

    assert release._chart(tmp_path, "1.0.0", 0).read_bytes() == first
    assert any(name.startswith("koordlet/files/crds/nodeslos") for name in names)
    assert not any(entry.issym() for entry in names.values())


def test_what_is_left_out_is_named_with_a_reason() -> None:
    """And koordlet names none of it."""
    sources = "\n".join(p.read_text() for p in (commands.REPO / "koordlet").rglob("*.py"))
    for pattern, reason in environment.LEFT_OUT.items():
        assert len(reason) >= len("headers"), pattern
        assert "/" not in pattern or pattern.replace("/", ".") not in sources


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names of those that there are."""
    with pytest.raises(SystemExit):
        release.main(["rpm"])
    assert "wheel, chart, deb, image, image-arm64, notes" in capsys.readouterr().err


def test_no_package_is_made_of_an_older_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the same version lies there, of another commit: the package gets this one's."""
    wheel = tmp_path / f"koordlet-{koordlet.__version__}-py3-none-any.whl"
    wheel.write_text("older")
    taken: list[str] = []

    def build(_into: Path, wheel: Path) -> tuple[Path, list[parts.Part]]:
        taken.append(wheel.read_text())
        return wheel, []

    def newer(_into: Path, version: str, _epoch: int) -> list[Path]:
        wheel.write_text(version)
        return [wheel]

    monkeypatch.setitem(release._BUILDERS, "deb", build)
    monkeypatch.setattr(release, "_wheel", newer)

    assert release.main(["deb", "--into", str(tmp_path)]) == 0
    assert taken == [koordlet.__version__]


@pytest.mark.soak
def test_two_releases_are_one(tmp_path: Path) -> None:
    """Every part, its list of parts and its sum; from the locked wheels and Debian's packages."""
    sums = []
    for name in ("one", "two"):
        assert release.main(["--into", str(tmp_path / name)]) == 0
        sums.append((tmp_path / name / "SHA256SUMS").read_text())

    assert sums[0] == sums[1]
    ends = ("-py3-none-any.whl", ".tar.gz", ".tgz", "_amd64.deb", ".oci.tar", ".spdx.json", ".md")
    assert [end for end in (*ends, "-arm64.oci.tar") if end not in sums[0]] == []
