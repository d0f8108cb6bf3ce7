"""Dates and times in texts (DESIGN §5, "Scrubbing"; CASES 16 and 18)."""
