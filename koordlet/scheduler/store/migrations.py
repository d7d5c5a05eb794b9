"""The tables of the store, as numbered migrations.

Covers: every step from an empty file to the present form. Does not cover: running them
(``database``). A step that was released is never edited; a change is a new step.
"""

from __future__ import annotations

#: ``PRAGMA user_version`` is the number of steps that a file has taken.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        # The newest revision, and the newest one that watches cannot start from any more.
        "CREATE TABLE clock (revision INTEGER NOT NULL, compacted INTEGER NOT NULL)",
        "INSERT INTO clock VALUES (1, 0)",
        """CREATE TABLE objects (
            kind TEXT NOT NULL,
            namespace TEXT NOT NULL,
            name TEXT NOT NULL,
            revision INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (kind, namespace, name)
        ) WITHOUT ROWID""",
        # ``before`` decides whether a change leaves the match of a selector; empty for new ones.
        """CREATE TABLE events (
            revision INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            namespace TEXT NOT NULL,
            before TEXT NOT NULL,
            after TEXT NOT NULL
        )""",
        "CREATE INDEX events_of_kind ON events (kind, revision)",
    ),
    # Of all other columns of the row; ``proof.seal`` fills them in.
    tuple(
        f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0"
        for table in ("clock", "objects", "events")
    ),
)

#: The form from which on rows have checksums.
SEALED = 2
