"""Several moves that belong together: emptying a node, making room for a pod that fits nowhere.

Covers: which pods go, in which order, where to, when, what stands in the way. All of it is a
function of the cluster, the limiter and the clock that is given. Does not cover: carrying it out.
"""
