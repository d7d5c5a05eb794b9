"""Every bad configuration file gets a clear error that names the culprit, and nothing hangs."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from koordlet import config
from koordlet.config import file_source, problems, yaml_source
from koordlet.model import errors

Write = Callable[[str], str]
Raw = Callable[[bytes], str]


def refused(path: str) -> errors.ConfigError:
    """The error that loading the file ends in."""
    with pytest.raises(errors.ConfigError) as caught:
        config.load(path, {}, {})
    return caught.value


class TestFile:
    """What is wrong before the content matters."""

    def test_missing(self, tmp_path: Path) -> None:
        """A file that the operator named must exist."""
        path = str(tmp_path / "none.yaml")

        error = refused(path)

        assert (path, "no such file") == (error.culprit, error.message)

    def test_missing_default(self) -> None:
        """The default file need not exist."""
        assert not Path(config.DEFAULT_PATH).exists()

        effective = config.load(None, {}, {})

        assert (None, ()) == (effective.path, effective.warnings)

    def test_directory(self, tmp_path: Path) -> None:
        """A directory is refused as such."""
        error = refused(str(tmp_path))

        assert (str(tmp_path), "a directory, not a regular file") == (error.culprit, error.message)

    @pytest.mark.usefixtures("no_hang")
    def test_fifo(self, tmp_path: Path) -> None:
        """A FIFO without a writer does not hang the agent."""
        path = tmp_path / "fifo"
        os.mkfifo(path)

        assert "a FIFO, not a regular file" == refused(str(path)).message

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
        assert "a device, not a regular file" == refused(path).message

    def test_socket(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A socket is refused as such."""
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("s")

            assert "a socket, not a regular file" == refused("s").message

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
            pytest.skip("no such file here")

        assert "more than" in refused(path).message

    def test_largest(self, write: Write) -> None:
        """Exactly the permitted size is read."""
        header = len(Path(write("")).read_bytes())
        path = write("#" * (file_source.MAX_BYTES - header))

        assert config.load(path, {}, {}).path == path


class TestText:
    """What is not text, or not the text of one document."""

    def test_nul(self, raw: Raw) -> None:
        """A NUL byte is named with its line."""
        path = raw(b"a: 1\nb: \0\n")

        assert f"{path}:2" == refused(path).culprit

    @pytest.mark.parametrize("content", [b"\x7fELF\x02\x01", b"mode: \xff\n", b"\xc3"])
    def test_undecodable(self, raw: Raw, content: bytes) -> None:
        """Bytes that are not UTF-8 are refused."""
        path = raw(content)

        assert refused(path).culprit.startswith(f"{path}:1")

    def test_utf16(self, raw: Raw) -> None:
        """UTF-16 is refused, although YAML would take it."""
        assert "not a text file" in refused(raw("mode: observe".encode("utf-16"))).message

    def test_byte_order_mark(self, raw: Raw) -> None:
        """A UTF-8 byte order mark is not part of the first key."""
        path = raw(b"\xef\xbb\xbfapiVersion: koordlet.io/v1\nkind: Config\n")

        assert "observe" != config.load(path, {}, {}).config.mode

    @pytest.mark.parametrize(
        "content", [b"", b"\n\n", b"# nothing\n", b"---\n", b"null\n", b"---\n...\n"]
    )
    def test_empty(self, raw: Raw, content: bytes) -> None:
        """An empty file is all defaults, with a warning that names it."""
        path = raw(content)

        effective = config.load(path, {}, {})

        assert config.load(None, {}, {}).config == effective.config
        assert [path] == [warning.split(":")[0] for warning in effective.warnings]

    @pytest.mark.parametrize("content", [b"- a\n", b"text\n", b"7\n", b"[]\n"])
    def test_no_mapping(self, raw: Raw, content: bytes) -> None:
        """A file that is not a mapping is told how one begins."""
        path = raw(content)

        error = refused(path)

        assert (f"{path}:1:1", "begin with apiVersion: koordlet.io/v1") == (
            error.culprit,
            error.fix,
        )

    def test_tabs(self, write: Write) -> None:
        """Tabs are named as the cause, with their line."""
        path = write("state:\n\tdir: /x\n")

        error = refused(path)

        assert (f"{path}:4:1", "indent with spaces, not with tabs") == (error.culprit, error.fix)

    def test_several_documents(self, write: Write) -> None:
        """The second document is an error where it begins."""
        path = write("---\nmode: observe\n")

        error = refused(path)

        assert (f"{path}:3:1", "a second document begins here") == (error.culprit, error.message)

    def test_broken_off(self, write: Write) -> None:
        """What a syntax error hides is not reported as missing."""
        path = write("workloads:\n- name: a\n  qos: [\n")

        error = refused(path)

        assert error.message.startswith("not valid YAML")

    @pytest.mark.parametrize("escape", ["\\ud800", "\\Uffffffff", "\\U00110000"])
    def test_half_characters(self, write: Write, escape: str) -> None:
        """An escape that names no character is an error of the file."""
        refused(write(f'node: {{labels: {{a: "{escape}"}}}}\n'))


class TestBombs:
    """Small files that would cost much."""

    @pytest.mark.usefixtures("no_hang")
    def test_aliases(self, write: Write) -> None:
        """A billion laughs end at the first alias."""
        lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
        lines += [
            f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]"
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        ]

        error = refused(write("\n".join(lines)))

        assert "aliases are not accepted: *a" in str(error)
        assert "anchors are not accepted: &a" in str(error)

    @pytest.mark.usefixtures("no_hang")
    @pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
    def test_depth(self, write: Write, opening: str) -> None:
        """Ten thousand levels are refused, not recursed into."""
        path = write("node: " + ("\n" if opening == "- " else "") + opening * 10_000)

        error = refused(path)

        assert f"nested more than {yaml_source.MAX_DEPTH} deep" in error.message

    @pytest.mark.usefixtures("no_hang")
    def test_width(self, write: Write) -> None:
        """A million values are refused before they are all read."""
        assert (
            "more than 50000 values"
            in refused(write("workloads: [" + "1," * 500_000 + "]")).message
        )

    @pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!binary", "!x", "!!set"])
    def test_tags(self, write: Write, tag: str) -> None:
        """A tag is refused, so nothing is ever constructed from one."""
        assert "tags are not accepted" in str(refused(write(f"mode: {tag} observe\n")))

    def test_long_number(self, write: Write) -> None:
        """A number of a hundred thousand digits is text, and of the wrong type."""
        error = refused(write(f"state: {{handoverSeconds: {'9' * 100_000}}}\n"))

        assert error.message.startswith("expected a whole number")
        assert len(str(error)) < 300


class TestKeys:
    """What is wrong with single keys and values."""

    def test_duplicate(self, write: Write) -> None:
        """A key that is there twice is an error with both lines."""
        path = write("mode: observe\nstate: {}\nmode: enforce\n")

        error = refused(path)

        assert (f"{path}:5:1: mode", "the key is here and on line 3") == (
            error.culprit,
            error.message,
        )

    def test_duplicate_below(self, write: Write) -> None:
        """Two elements of a list may have the same keys; one element may not have one twice."""
        path = write("workloads:\n- {name: a, qos: BE, match: {unit: a.service}, name: b}\n")

        assert f"{path}:4:48: workloads[0].name" == refused(path).culprit

    @pytest.mark.parametrize("key", ["1", "true", "~", "1.5", "0x10"])
    def test_key_not_text(self, write: Write, key: str) -> None:
        """A key that is no text is an error that quotes it."""
        error = refused(write(f"node: {{labels: {{{key}: x}}}}\n"))

        assert (True, f'quote it: "{key}"') == (
            error.message.startswith("a key is text"),
            error.fix,
        )

    @pytest.mark.parametrize("key", ["? [a, b]\n", "? {a: b}\n"])
    def test_key_collection(self, write: Write, key: str) -> None:
        """A collection is no key."""
        assert "a key is a plain word" in str(refused(write(key)))

    @pytest.mark.parametrize(
        ("body", "where", "fix"),
        [
            ("stat: {}", "3:1: stat", 'did you mean "state"?'),
            (
                "state: {handoverSecond: 1}",
                "3:9: state.handoverSecond",
                'did you mean "handoverSeconds"?',
            ),
            (
                "state: {handover_seconds: 1}",
                "3:9: state.handover_seconds",
                'did you mean "handoverSeconds"?',
            ),
            (
                "policies: {sharedPools: {}}",
                "3:12: policies.sharedPools",
                'did you mean "shared_pools"?',
            ),
            ("log: {zzz: 1}", "3:7: log.zzz", "known here: level, format"),
        ],
    )
    def test_unknown_key(self, write: Write, body: str, where: str, fix: str) -> None:
        """An unknown key is an error at the key, naming the nearest known one."""
        path = write(body)

        error = refused(path)

        assert (f"{path}:{where}", fix) == (error.culprit, error.fix)

    @pytest.mark.parametrize(
        ("body", "where", "message"),
        [
            ("mode: 1", "3:7: mode", "expected enforce or observe, found 1"),
            ("node: []", "3:7: node", "expected a section with keys, found a list"),
            ("workloads: {}", "3:12: workloads", "expected a list, found a section with keys"),
            (
                "state: {handoverSeconds: '5'}",
                "3:26: state.handoverSeconds",
                'expected a whole number, found "5"',
            ),
            (
                "state: {handoverSeconds: 1.5}",
                "3:26: state.handoverSeconds",
                "expected a whole number, found 1.5",
            ),
            (
                "state: {handoverSeconds: -1}",
                "3:26: state.handoverSeconds",
                "at least 0 is needed, found -1",
            ),
            ("state: {dir: x}", "3:14: state.dir", 'not an absolute path: "x"'),
            (
                "report: {http: {enabled: yes}}",
                "3:26: report.http.enabled",
                'expected true or false, found "yes"',
            ),
            (
                "report: {http: {address: 9316}}",
                "3:26: report.http.address",
                "expected an address, found 9316",
            ),
            ("node: {labels: {a: 1}}", "3:20: node.labels.a", "expected text, found 1"),
            (
                "node: {labels: []}",
                "3:16: node.labels",
                "expected a map of keys and values, found a list",
            ),
        ],
    )
    def test_wrong_type(self, write: Write, body: str, where: str, message: str) -> None:
        """A wrong type is an error at the value, saying what was expected and found."""
        path = write(body)

        error = refused(path)

        assert (f"{path}:{where}", message) == (error.culprit, error.message)

    @pytest.mark.parametrize("stem", ["reserved_cpus", "shared_pools"])
    def test_policy_mode(self, write: Write, stem: str) -> None:
        """A wrong word is an error that suggests the right one."""
        path = write(f"policies:\n  {stem}:\n    mode: enfroce\n")

        error = refused(path)

        assert (f"{path}:5:11: policies.{stem}.mode", 'did you mean "enforce"?') == (
            error.culprit,
            error.fix,
        )

    @pytest.mark.parametrize(
        ("text", "fix"),
        [
            ("apiVersion: koordlet.io/v2\nkind: Config\n", "write apiVersion: koordlet.io/v1"),
            ("apiVersion: v1\nkind: Config\nspec: {}\n", "write apiVersion: koordlet.io/v1"),
            ("kind: Config\n", "write apiVersion: koordlet.io/v1"),
            ("apiVersion: koordlet.io/v1\nkind: config\n", "write kind: Config"),
            ("apiVersion: koordlet.io/v1\nmode: observe\nspec: {}\n", "write kind: Config"),
        ],
    )
    def test_header(self, raw: Raw, text: str, fix: str) -> None:
        """Another kind of file gets one error, with the right header."""
        assert fix == refused(raw(text.encode())).fix

    def test_all_together(self, write: Write) -> None:
        """All problems of a file are reported together, in the order of its lines."""
        path = write("mode: x\nnode: {name: x, name: y}\nbogus: 1\nlog: {level: loud}\n")

        error = refused(path)

        assert isinstance(error, problems.ConfigErrors)
        lines = [problem.culprit.removeprefix(path) for problem in error.problems]
        assert [":3:7: mode", ":4:17: node.name", ":5:1: bogus", ":6:14: log.level"] == lines
        assert all(culprit in str(error) for culprit in lines)

    def test_at_most_twenty(self, write: Write) -> None:
        """Of very many problems the first twenty are shown, and how many are left."""
        error = refused(write("".join(f"bogus{n}: 1\n" for n in range(50))))

        assert 22 == len(str(error).splitlines())
        assert str(error).endswith("… and 30 more")
