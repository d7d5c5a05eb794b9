"""The kubelet of this node: its endpoints and its checkpoints, each optional."""
