"""The scheduler as a process: its store, its servers, its pages, a standalone cluster's API.

The one room of the scheduler that may import the agent's rooms.
"""
