"""The parts of an answer that re-basing edits, wire by wire; `matching.rebase` is what others use."""
