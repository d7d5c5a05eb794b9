"""The resctrl policy: cache ways and memory bandwidth."""
