"""Keys and values of labels as API servers take them."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import labels


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("app", True),
        ("App_1.x-y", True),
        ("example.com/app", True),
        ("a" * 63, True),
        (f"{'a.' * 126}b/app", True),
        ("", False),
        ("a" * 64, False),
        ("-app", False),
        ("app.", False),
        ("Example.com/app", False),
        ("/app", False),
        ("a/b/c", False),
        ("app\n", False),
        (f"{'a.' * 127}b/app", False),
    ],
)
def test_a_key_is_a_name_that_may_have_a_dns_prefix(key: str, *, good: bool) -> None:
    """Sixty-three characters at most, after a prefix of 253."""
    assert (labels.key_fault(key) == "") is good


@pytest.mark.parametrize(
    ("value", "good"),
    [("", True), ("a" * 63, True), ("1.2_x-Y", True), ("a" * 64, False), ("a b", False)],
)
def test_a_value_is_a_name_or_empty(value: str, *, good: bool) -> None:
    """The same letters as in a key, without a prefix."""
    assert (labels.value_fault(value) == "") is good


def test_a_fault_names_what_is_wrong() -> None:
    """The key before the values."""
    assert "'a/b/c'" in labels.fault("a/b/c", ["-"])
    assert labels.fault("a", ["b", "-"]).startswith("'-' is not a value of a label")
