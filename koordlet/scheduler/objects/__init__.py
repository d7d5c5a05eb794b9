"""API objects as the scheduler reads them: pods, nodes, their annotations, requests and terms."""
