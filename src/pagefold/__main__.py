"""`python -m pagefold` is the command `pagefold`."""

from pagefold.cli import main

if __name__ == "__main__":  # a worker process imports this module and must not run the command again
    raise SystemExit(main())
