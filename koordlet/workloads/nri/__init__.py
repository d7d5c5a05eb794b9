"""The container runtime's plugin interface (NRI): containers are right before they begin.

``mux`` frames, ``ttrpc`` calls, ``fields`` and ``messages`` say what is in them; ``session`` is the
conversation without a socket, ``plugin`` the thread with one; ``trust`` decides whether we may go
on adjusting. What a container gets is decided elsewhere (``koordlet.agent.nri.handler``).

The messages are read and written here and not by ``google.protobuf``: a dozen fields of them
matter, generated classes would load 15 MB into the agent, and an unknown field, a wrong type or a
damaged message must cost one event and not the connection.
"""
