"""Recordings in and out as files: our text for people and git, and what other tools record."""
