"""Everything pagefold keeps in SQLite files: the store with its five parts, and the daily counts."""
