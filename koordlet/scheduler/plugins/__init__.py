"""The plugins of the default profile: one module a noun, semantics of Kubernetes 1.36.

Covers: filters and scores over columns. Does not cover: the framework, configuration.
"""
