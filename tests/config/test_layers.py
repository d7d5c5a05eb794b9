"""Layers are piled up in their order, and each value knows who set it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from koordlet.config import layers

TREES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.integers() | st.lists(st.integers(), max_size=2),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


def layer(name: layers.Name, data: dict[str, object]) -> layers.Layer:
    """A layer whose values all come from the place of the same name."""
    return layers.Layer(name, data, {loc: name.name for loc, _ in layers.leaves(data)})


def test_order() -> None:
    """The precedence is that of the contract, from the file up to the flags."""
    assert [name.name for name in sorted(layers.Name)] == ["FILE", "ENVIRONMENT", "FLAGS"]


def test_stronger_wins() -> None:
    """The stronger layer wins, in whatever order the layers are given."""
    unordered = [layer(name, {"a": {"b": name.value}}) for name in reversed(layers.Name)]

    merged = layers.merge(unordered)

    assert {"a": {"b": layers.Name.FLAGS.value}} == merged.data
    assert merged.origin(("a", "b")) == "FLAGS"


def test_maps_merge_lists_do_not() -> None:
    """Maps are merged key by key; a list replaces a list, and its old origins go."""
    low = layer(layers.Name.FILE, {"m": {"a": 1, "b": 1}, "l": [1, 2, 3]})
    high = layer(layers.Name.ENVIRONMENT, {"m": {"b": 2}, "l": [9]})

    merged = layers.merge([low, high])

    assert merged.data == {"m": {"a": 1, "b": 2}, "l": [9]}
    assert merged.origins == {
        ("m", "a"): "FILE",
        ("m", "b"): "ENVIRONMENT",
        ("l", 0): "ENVIRONMENT",
    }


def test_null_section() -> None:
    """An empty section of a stronger layer takes nothing back."""
    low = layer(layers.Name.FILE, {"m": {"a": 1}})
    high = layer(layers.Name.FLAGS, {"m": None})

    assert layers.merge([low, high]).data == {"m": {"a": 1}}


@given(st.lists(TREES, max_size=3))
def test_origins_complete(trees: list[dict[str, object]]) -> None:
    """Every value that somebody set has an origin, and only those."""
    names = list(layers.Name)

    merged = layers.merge(layer(names[i], tree) for i, tree in enumerate(trees))

    leaves = {loc for loc, value in layers.leaves(merged.data) if loc and value != {}}
    assert leaves == set(merged.origins)


@given(TREES, TREES)
def test_layers_stay(low: dict[str, object], high: dict[str, object]) -> None:
    """Merging changes none of the layers."""
    before = repr((low, high))

    layers.merge([layer(layers.Name.FILE, low), layer(layers.Name.FLAGS, high)])

    assert before == repr((low, high))
