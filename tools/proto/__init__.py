"""The gRPC code, made from the protos."""
