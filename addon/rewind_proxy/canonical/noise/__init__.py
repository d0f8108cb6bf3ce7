"""What differs between two runs of one tool, in its results (DESIGN §5, "Scrubbing")."""
