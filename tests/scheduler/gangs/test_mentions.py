"""Gangs that name each other, in either direction, are connected."""

from __future__ import annotations

from koordlet.scheduler.gangs.mentions import Mention, Mentions


class Carriers:
    """Gangs with the lists that they carry."""

    def __init__(self) -> None:
        self.mentions = Mentions()
        self.carried: dict[str, Mention] = {}

    def add(self, owner: str, *names: str) -> bool:
        """A gang carries a list; whether that connects others anew."""
        self.carried[owner], connects = self.mentions.add(names, owner)
        return connects

    def connected(self, key: str) -> set[str]:
        """All that are connected with a gang."""
        return self.mentions.connected(key, self.carried.get)


def test_gangs_are_connected_by_whoever_names_whom_and_through_others() -> None:
    """A names B, C names B: all three are one group; D is alone."""
    carriers = Carriers()
    carriers.add("a", "a", "b")
    carriers.add("c", "b")
    for key in "abc":
        assert carriers.connected(key) == {"a", "b", "c"}
    assert carriers.connected("d") == {"d"}


def test_an_equal_list_of_a_gang_that_is_in_it_connects_nobody_anew() -> None:
    """A thousand gangs with one list cost one mention; a stranger with the list is connected."""
    carriers = Carriers()
    assert carriers.add("a", "a", "b")
    assert not carriers.add("b", "a", "b")
    assert carriers.add("c", "a", "b")
    assert carriers.carried["a"] is carriers.carried["b"]


def test_a_gang_is_named_until_the_last_list_with_it_is_gone() -> None:
    """Two lists name B: it is named by nobody when the carriers of both have dropped theirs."""
    carriers = Carriers()
    carriers.add("a", "a", "b")
    carriers.add("c", "b", "c")
    assert sorted(carriers.mentions.remove(carriers.carried.pop("a"), "a")) == ["a"]
    assert "b" in carriers.mentions
    assert sorted(carriers.mentions.remove(carriers.carried.pop("c"), "c")) == ["b", "c"]
    assert "b" not in carriers.mentions
    assert carriers.connected("b") == {"b"}
