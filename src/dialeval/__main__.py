"""`python -m dialeval` is the same as `dialeval`."""

from dialeval.cli import main

if __name__ == "__main__":
    main()
