"""The mitmproxy side: hooks, options, the streaming tee. The only package that imports mitmproxy."""
