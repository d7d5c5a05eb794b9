"""Commands of development, which no installed agent has."""
