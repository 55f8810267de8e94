"""The version of binas, in one place."""

__version__ = "0.1.0"
TOOL = f"binas {__version__}"  # how files and pages name what made them
