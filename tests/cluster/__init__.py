"""Our programs beside the real Kubernetes: what we say about clusters is watched here."""
