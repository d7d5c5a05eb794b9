"""The documents are true: pages, links, commands."""
