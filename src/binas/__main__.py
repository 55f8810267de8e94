"""``binas``, and ``python -m binas``, which is the same: signals are heard before anything slow is loaded."""

from binas.base.interrupts import leave_when_asked


def main() -> None:
    """Load the command line, which takes most of a second, and run it."""
    leave_when_asked()
    from binas.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
