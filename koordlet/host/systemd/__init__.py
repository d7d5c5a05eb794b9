"""systemd: its bus, its units, and telling it how we are."""
