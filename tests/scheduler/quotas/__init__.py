"""Tests of elastic quotas."""
