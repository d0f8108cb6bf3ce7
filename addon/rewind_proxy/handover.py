"""What a verb and the proxy it starts as a child agree on (`cli` and `mitm` do not import each other)."""

UPSTREAM_AUTH_VARIABLE = "_REWIND_UPSTREAM_AUTH"
"""`user:password` of the corporate proxy: a command line is for everybody on the machine to see."""
READY_FLAG = "--ready"
"""A file that is written with `{"port", "url"}` once the proxy listens."""
REPORT_FLAG = "--report"
"""A file that is written with the report (DESIGN §12, without the child's exit) when the proxy has ended."""
