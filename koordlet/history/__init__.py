"""The only memory between ticks: rings and windows. Pure; time is passed in.

Covers: bounded series, windows over them. Does not cover: what policies remember (their own state).
"""
