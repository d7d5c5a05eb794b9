"""Files of the kernel: the one port to them, reads that get no answer, file systems that hang."""
