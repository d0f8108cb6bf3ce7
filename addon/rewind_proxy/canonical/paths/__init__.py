"""Paths in texts: which folders are roots, how they are written, and what is noise below them."""
