"""The strategies of the descheduler, one family a module."""
