"""Who may evict a pod, and when: rates, the one limiter for all movers, what is counted of both."""
