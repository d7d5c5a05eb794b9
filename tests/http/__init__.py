"""Tests of the HTTP server: real sockets on loopback, real and hostile clients."""
