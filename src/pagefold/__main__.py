"""`python -m pagefold` is the command `pagefold`."""

from pagefold.cli import main

raise SystemExit(main())
