"""One suite for every adapter of the port ``kubeapi.objects``: each rule of the port is one test.

The adapters: ``sqlite`` (``scheduler.store``), ``kube`` (over the API server of ``tests.kit``), and
``real`` (``kube`` over etcd and kube-apiserver, where ``KUBEBUILDER_ASSETS`` names the directory of
those programs; the list of skipped tests says so where it does not).
"""
