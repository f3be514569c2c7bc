"""Everything pagefold keeps in SQLite files: pages, the outbox of the history sink, the search index, the journal."""
