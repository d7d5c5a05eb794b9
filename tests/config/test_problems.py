"""What is wrong with single keys and values is said with line, column, path and fix."""

from __future__ import annotations

import pytest

from koordlet.config import problems
from tests.config.refusing import Raw, Write, refused


class TestKeys:
    """What is wrong with single keys and values."""

    def test_duplicate(self, write: Write) -> None:
        """A key that is there twice is an error with both lines."""
        path = write("mode: observe\nstate: {}\nmode: enforce\n")

        error = refused(path)

        assert (f"{path}:5:1: mode", "duplicate key, also on line 3") == (
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
            error.message.startswith("a key must be text"),
            error.fix,
        )

    @pytest.mark.parametrize("key", ["? [a, b]\n", "? {a: b}\n"])
    def test_key_collection(self, write: Write, key: str) -> None:
        """A collection is no key."""
        assert "a key must be a plain word" in str(refused(write(key)))

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
        assert lines == [":3:7: mode", ":4:17: node.name", ":5:1: bogus", ":6:14: log.level"]
        assert all(culprit in str(error) for culprit in lines)

    def test_at_most_twenty(self, write: Write) -> None:
        """Of very many problems the first twenty are shown, and how many are left."""
        error = refused(write("".join(f"bogus{n}: 1\n" for n in range(50))))

        assert len(str(error).splitlines()) == 22
        assert str(error).endswith("… and 30 more")
