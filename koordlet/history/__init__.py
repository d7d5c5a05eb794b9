"""History: rings and windows between ticks. Pure; time is passed in.

Covers: bounded series, windows over them. Does not cover: what policies remember (their own state).
"""
