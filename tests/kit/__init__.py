"""Tools that tests are made with."""
