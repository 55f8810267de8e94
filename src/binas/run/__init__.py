"""Folders on disk: examples and, with later steps, whole runs."""
