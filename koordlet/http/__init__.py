"""The one HTTP server: h11 on asyncio, knows nothing of what it serves.

Covers: connections, limits, who may ask (``authorise``), requests and responses as values.
Does not cover: what the endpoints say (``report.http_api``).
"""
