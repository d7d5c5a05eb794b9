"""The operator's input, validated once: one file, the environment, the command line.

Covers: the schema, reading and merging every source, errors with line and field path, reloading.
Does not cover: the ``config`` command (``cli.config``), acting on a change (``agent.loop``).

Commands read it themselves (``loader``). The agent, which lives for months, has it read
(``examiner``): what of this room it imports knows no models.
"""
