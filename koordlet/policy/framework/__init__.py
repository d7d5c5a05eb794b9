"""The policy framework: registry, chain, container admission, guard."""
