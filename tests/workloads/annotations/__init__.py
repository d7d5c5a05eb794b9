"""Tests of the annotations' decoders."""
