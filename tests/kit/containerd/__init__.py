"""A real container runtime for the tests: containerd, runc and crun from Debian, in their corner.

``programs`` fetches and unpacks them, nothing is installed; ``runtime`` starts containerd; ``cri``
speaks to it as a kubelet does; ``image`` makes the one image there is; ``wire`` encodes.

    python -m tests.kit.containerd fetch

``docker`` starts Docker's daemon with that containerd: ``… fetch docker`` (soak tests alone).

What it does to the host: cgroups below the parent that a test names, and nothing else. Mounts and
processes live in namespaces that end with containerd, even where it is killed.
"""
