"""The meaning of a request: pure functions, no I/O."""
