"""Tests of what is deployed: manifests, units, image."""
