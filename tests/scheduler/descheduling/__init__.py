"""The descheduler: configuration, framework and strategies."""
