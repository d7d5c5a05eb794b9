"""``--set``: keys that the configuration has, with values as they would be spelled."""

from __future__ import annotations

import argparse

import pytest

from koordlet.cli import options
from koordlet.config import sourced
from koordlet.model import errors


def read(*words: str) -> dict[str, object]:
    """What a command line says."""
    parser = argparse.ArgumentParser()
    options.changes(parser)
    return options.changed(parser.parse_args(words))


def test_several() -> None:
    """Each by its key, the value as text, the origin as it is spelled; nothing is nothing."""
    flags = read("--set", "mode=observe", "--set", "state.dir=/a=b")

    assert {key: flag.value for key, flag in flags.items() if isinstance(flag, sourced.Flag)} == {
        "mode": "observe",
        "state.dir": "/a=b",
    }
    assert read() == {}


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e300", "soon", ""])
def test_no_span_of_time(text: str) -> None:
    """What would last for ever, or has no spelling in an object, is refused."""
    with pytest.raises(argparse.ArgumentTypeError, match="from 0 to 1000000000 seconds"):
        options.seconds(text)
    assert options.seconds("0.5") == 0.5


@pytest.mark.parametrize("text", ["/", "//", "/kubelet/", "a/b"])
def test_a_cgroup_root_may_be_the_root_and_have_slashes_around_it(text: str) -> None:
    """As it is spelled: whoever uses it does not mind."""
    parser = argparse.ArgumentParser()
    options.cgroup_root(parser)
    assert parser.parse_args(["--cgroup-root", text]).cgroup_root == text


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "1000001", "9" * 5000])
def test_no_count(text: str) -> None:
    """What no list is so long as to need."""
    with pytest.raises(argparse.ArgumentTypeError, match="from 0 to 1000000, not "):
        options.count(text)
    assert options.count("7") == 7


@pytest.mark.parametrize(
    ("words", "why", "fix"),
    [
        ("mode", "is not KEY=VALUE", 'did you mean "mode"?'),
        ("moed=observe", "no key moed", 'did you mean "mode"?'),
        ("=x", "no key", "koordlet config"),
    ],
)
def test_what_is_no_change(words: str, why: str, fix: str) -> None:
    """The error names the word and the nearest key."""
    with pytest.raises(errors.UsageError) as caught:
        read("--set", words)

    assert why in caught.value.message
    assert fix in caught.value.fix
    assert f"--set {words}" == caught.value.culprit


@pytest.mark.parametrize("text", ["127.0.0.1:99999", "[::1]:65536", "http://a:0/", "a:00000"])
def test_no_port_is_beyond_the_last(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word a connection to another port is tried, and refused."""
    parser = argparse.ArgumentParser()
    options.declare(parser, {"--address HOST:PORT": "who"})
    with pytest.raises(SystemExit):
        parser.parse_args(["--address", text])
    assert "argument --address: a port is from 1 to 65535, not" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["127.0.0.1:65535", "unix:/run/a:99999", "http://a:9317/", "a", "[::1]:1", "dns:///b:2"]
)
def test_any_other_address_is_taken_as_it_is(text: str) -> None:
    """A port that is no number, or none at all, is told by whoever connects."""
    parser = argparse.ArgumentParser()
    options.declare(parser, {"--address HOST:PORT": "who"})
    assert parser.parse_args(["--address", text]).address == text
