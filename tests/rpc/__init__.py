"""Tests of the feed: real Unix sockets, real gRPC clients and hostile ones."""
