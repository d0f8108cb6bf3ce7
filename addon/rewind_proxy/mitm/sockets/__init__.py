"""Model sockets that are served here (DESIGN §9): both ends, the turns on them, and what answers."""
