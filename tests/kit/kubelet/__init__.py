"""A kubelet for tests: TLS, a token, its endpoints from files, and what may be wrong with one."""
