"""Shows. Renders what the line published; never reads the machine, never decides.

Covers: the view, the plan document, metrics, the feed's content.
Does not cover: transport (``http``, ``rpc``), terminals (``cli``).
"""
