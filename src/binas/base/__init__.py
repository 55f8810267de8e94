"""What every room needs, once: errors, files, progress, intervals, JSON lines, identities."""
