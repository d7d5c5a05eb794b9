"""Files that are not text, not one document, or bombs get a clear error, and nothing hangs."""

from __future__ import annotations

import pytest

from koordlet.config import loader, yaml_source
from tests.config.refusing import Raw, Write, refused


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

        assert loader.load(path, {}, {}).config.mode != "observe"

    @pytest.mark.parametrize(
        "content", [b"", b"\n\n", b"# nothing\n", b"---\n", b"null\n", b"---\n...\n"]
    )
    def test_empty(self, raw: Raw, content: bytes) -> None:
        """An empty file is all defaults, with a warning that names it."""
        path = raw(content)

        effective = loader.load(path, {}, {})

        assert loader.load(None, {}, {}).config == effective.config
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

        assert (f"{path}:3:1", "a second document starts here") == (error.culprit, error.message)

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
