"""The agent of one host: the loop, one tick, its life from start to hand-over, what it shows.

Covers: putting the rooms below it together. Does not cover: any room's own work.
"""
