"""Requests, answers and steps for people: lines of styled text, the same for terminal and mitmproxy."""
