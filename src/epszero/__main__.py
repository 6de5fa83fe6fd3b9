"""`python -m epszero`: the command line."""

from epszero.cli import main

if __name__ == "__main__":
    main()
