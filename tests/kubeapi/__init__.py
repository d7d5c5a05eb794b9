"""Tests of ``koordlet.kubeapi``."""
