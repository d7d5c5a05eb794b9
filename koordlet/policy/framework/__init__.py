"""What runs the policies: their list, the chain, admission of containers, the guard."""
