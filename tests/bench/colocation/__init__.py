"""Co-location measured: what latency-sensitive work loses and best-effort work gets, arm by arm."""
