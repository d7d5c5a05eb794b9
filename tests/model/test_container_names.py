"""Names that runtimes give to containers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import container_names

ID = "0123456789abcdef" * 4

LEAVES = st.one_of(
    st.builds(container_names.Leaf, id=st.from_regex(r"[0-9a-f]{64}", fullmatch=True)),
    st.builds(
        container_names.Leaf,
        id=st.from_regex(r"[0-9a-f]{12,64}", fullmatch=True),
        prefix=st.sampled_from(sorted(container_names.RUNTIMES)),
        scope=st.booleans(),
    ),
)


@pytest.mark.parametrize(
    ("name", "runtime"),
    [
        (f"cri-containerd-{ID}.scope", "containerd"),
        (f"crio-{ID}.scope", "cri-o"),
        (f"crio-{ID}", "cri-o"),
        (f"docker-{ID}.scope", "docker"),
        (f"libpod-{ID}.scope", "podman"),
        (ID, ""),
        (f"kubepods-podx.slice:cri-containerd:{ID}", "containerd"),
    ],
)
def test_containers(name: str, runtime: str) -> None:
    """The runtime is told by the prefix; a bare id tells none."""
    parsed = container_names.parse(name)

    assert parsed is not None
    assert (ID, runtime, name) == (parsed.id, parsed.runtime, str(parsed))


@pytest.mark.parametrize(
    "name",
    [
        f"crio-conmon-{ID}.scope",
        f"libpod-conmon-{ID}.scope",
        f"other-{ID}.scope",
        f"{ID}.scope",
        ID[1:],
        ID.upper(),
        "crio-.scope",
        "container",
        "init.scope",
        f"a/b.slice:crio:{ID}",
        f"x:crio:{ID}",
        f"{ID}\n",
        "",
    ],
)
def test_what_is_no_container(name: str) -> None:
    """Monitors, units of others, and what only looks like an id."""
    assert container_names.parse(name) is None


@given(LEAVES)
def test_a_name_comes_back(leaf: container_names.Leaf) -> None:
    """What is written is read as it was."""
    assert leaf == container_names.parse(str(leaf))


@given(st.text())
def test_nothing_is_refused(text: str) -> None:
    """No text raises, and what is read is written as it was."""
    leaf = container_names.parse(text)
    assert leaf is None or text == str(leaf)


@pytest.mark.parametrize(
    ("scope", "inside", "nested"),
    [
        (f"p/cri-containerd-{ID}.scope", ("container",), True),
        (f"p/crio-{ID}.scope", ("container", "init.scope"), False),
        (f"p/crio-{ID}.scope", ("other",), False),
        (f"p/crio-{ID}.scope", (), False),
        (f"p/{ID}", ("container",), False),
    ],
)
def test_where_a_container_lives(scope: str, inside: tuple[str, ...], *, nested: bool) -> None:
    """In what crun nests in a scope, where there is that alone; else in its own group."""
    home = container_names.home(scope, [f"{scope}/{name}" for name in inside])

    assert (f"{scope}/container" if nested else scope) == home
