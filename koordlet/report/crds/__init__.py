"""The custom resources: their models, the definitions made from them, and nothing else.

Covers: what every object of ours and of the peers looks like, as pydantic models; the YAML of
``koordlet crds``, which is what ``deploy/crds/`` holds.
Does not cover: rendering objects (``report.objects``), decoding them (``workloads``): neither needs
pydantic.
"""
