"""Several moves that belong together, without a store."""
