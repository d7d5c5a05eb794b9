"""A second scheduler, slow and plain, that shares nothing with the first: the differential proof.

Written from the description of kube-scheduler's behaviour alone: dictionaries as kubectl prints
them, one node at a time, everything computed anew for each question.
"""
