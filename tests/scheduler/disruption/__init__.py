"""Who may evict a pod, and when."""
