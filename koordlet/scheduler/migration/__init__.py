"""PodMigrationJobs: a pod leaves its node after room for its replacement is held elsewhere.

Covers: the object (``job``), its life (``flow``), which jobs may begin (``arbitration``), the
reservation of a job (``room``). All of it is a function of jobs, the cluster and the clock that is
given. Does not cover: watching and writing (``loop.migration_controller``).

Whoever wants a pod moved creates the object of ``job.request(...)`` and follows its status; nothing
else is needed. ``loop.migration_controller`` carries it out: it evicts through the one limiter.
"""
