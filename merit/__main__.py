"""``python -m merit``: the command line of ``merit.cli``."""

from merit.cli import main

if __name__ == "__main__":
    main()
