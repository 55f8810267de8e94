"""``python -m binas`` is ``binas``."""

from binas.cli.main import main

if __name__ == "__main__":
    main()
