"""Elastic quotas: trees of shares that may be lent and called back.

Covers: dividing a total (``runtime``), amounts over one tree (``tree``), which quotas there are and
whose pods are in them (``book``), whether objects agree (``validation``), whether a pod is admitted
(``admission``), making room inside a quota (``preemption``).
Does not cover: how objects spell quotas (``kubeapi.elastic_quotas``), calling back what was lent.
"""
