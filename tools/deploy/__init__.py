"""Generators of what ``deploy/`` has twice: the chart is made from the manifests."""
