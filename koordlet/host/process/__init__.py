"""Processes: who they are, their cookies and scores, and what this process may use."""
