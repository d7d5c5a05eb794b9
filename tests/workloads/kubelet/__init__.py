"""Tests of ``koordlet.workloads.kubelet``."""
