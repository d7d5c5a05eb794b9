"""Tests of koordlet/scheduler/migration."""
