"""The file system resctrl: its groups, their tasks, what they used."""
