"""The store in a Postgres database, which many instances share."""
