"""What is wrong with a file before its content matters is named, and nothing hangs."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from koordlet.config import file_source, loader, places
from tests.config.refusing import Raw, Write, refused
from tests.kit import needs


class TestFile:
    """What is wrong before the content matters."""

    def test_missing(self, tmp_path: Path) -> None:
        """A file that the operator named must exist."""
        path = str(tmp_path / "none.yaml")

        error = refused(path)

        assert (path, "no such file") == (error.culprit, error.message)

    def test_missing_default(self) -> None:
        """The default file need not exist."""
        assert not Path(places.DEFAULT_PATH).exists()

        effective = loader.load(None, {}, {})

        assert (effective.path, effective.warnings) == (None, ())

    def test_directory(self, tmp_path: Path) -> None:
        """A directory is refused as such."""
        error = refused(str(tmp_path))

        assert (str(tmp_path), "a directory, not a regular file") == (error.culprit, error.message)

    @pytest.mark.usefixtures("no_hang")
    def test_fifo(self, tmp_path: Path) -> None:
        """A FIFO without a writer does not hang the agent."""
        path = tmp_path / "fifo"
        os.mkfifo(path)

        assert refused(str(path)).message == "a FIFO, not a regular file"

    @pytest.mark.usefixtures("no_hang")
    def test_fifo_in_between(self, tmp_path: Path) -> None:
        """A FIFO that takes the place of the file after it was looked at does not hang either."""
        path = tmp_path / "fifo"
        os.mkfifo(path)

        os.close(file_source.open_unblocked(str(path)))

    @pytest.mark.usefixtures("no_hang")
    @pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
    def test_device(self, path: str) -> None:
        """A device is not read."""
        assert refused(path).message == "a device, not a regular file"

    def test_socket(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A socket is refused as such."""
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("s")

            assert refused("s").message == "a socket, not a regular file"

    def test_unreadable(self, write: Write) -> None:
        """A file that may not be read says so and what to do."""
        path = write("")
        Path(path).chmod(0)
        before = os.geteuid()
        if before == 0:
            os.seteuid(65534)
        try:
            error = refused(path)
        finally:
            os.seteuid(before)

        assert (path, "cannot be read: Permission denied") == (error.culprit, error.message)
        assert "make it readable" in error.fix

    def test_link_circle(self, tmp_path: Path) -> None:
        """Symbolic links in a circle are named as the cause."""
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")

        assert "links lead in a circle" in refused(str(tmp_path / "a")).fix

    @pytest.mark.parametrize("path", ["a\0b", ""])
    def test_not_a_name(self, path: str) -> None:
        """A name that no file can have is an error, not a crash."""
        refused(path)

    def test_ten_megabytes(self, raw: Raw) -> None:
        """A giant is refused by its size."""
        path = raw(b"#" * (10 << 20))

        error = refused(path)

        assert (path, True) == (error.culprit, error.message.startswith("10485760 bytes"))

    @pytest.mark.usefixtures("no_hang")
    def test_size_unknown(self) -> None:
        """A regular file that says 0 bytes and holds many is cut off, too."""
        path = "/proc/kallsyms"
        if Path(path).stat().st_size or len(Path(path).read_bytes()) <= file_source.MAX_BYTES:
            needs.missing(f"{path}: a large file of no size")

        assert "more than" in refused(path).message

    def test_largest(self, write: Write) -> None:
        """Exactly the permitted size is read."""
        header = len(Path(write("")).read_bytes())
        path = write("#" * (file_source.MAX_BYTES - header))

        assert loader.load(path, {}, {}).path == path
