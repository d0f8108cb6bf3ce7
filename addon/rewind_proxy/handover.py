"""What a verb and the proxy it starts as a child agree on (`cli` and `mitm` do not import each other)."""

UPSTREAM_AUTH_VARIABLE = "_REWIND_UPSTREAM_AUTH"
"""`user:password` of the corporate proxy: a command line is for everybody on the machine to see."""
READY_FLAG = "--ready"
"""A file that is written with `{"port", "url"}` once the proxy listens, or `{"error"}` when it cannot."""
REPORT_FLAG = "--report"
"""A file that is written with the report (DESIGN §12, without the child's exit) when the proxy has ended."""
FLOWS_TOOL = "flows"
"""What the child is told to be, to print the flows of a file (`porting.flow_lines`)."""
STEPS_FLAG = "--steps"
"""A file that is written with every model step (`journal.JournalStep`) when the proxy has ended."""
CALLS_FLAG = "--calls"
"""Each model call that was answered is a line of the log."""
QUESTIONS_FLAG = "--questions"
"""The proxy is led by lines: what it says goes to standard output, one JSON object a line, and nothing else.

`{"port"}` once it listens, or `{"error"}` when it cannot; for each line `REPORT_QUESTION` on its standard
input the report of the model calls since the last one (`journal.report_of`, with its `text` in each miss). It
ends when its standard input does, with a last report.
"""
REPORT_QUESTION = "report"
PROXY_URL = "http://rewind.invalid"
"""Stands for the URL of the proxy in an environment that is made before the proxy has a port."""
PLUGIN_PROXY = "rewind_proxy.cli.plugin_proxy"
"""The module that the pytest plugin runs, perhaps by another interpreter than its own."""
