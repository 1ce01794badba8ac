"""`python -m poise` runs the command line."""

from poise.cli import main

if __name__ == "__main__":
    main()
