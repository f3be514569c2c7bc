"""The tables of the page store, as the steps that bring a file of any earlier version up to date."""

from collections.abc import Sequence

APPLICATION_ID = 0x70666F6C

# Pages stand apart from their contents, so that finding, refreshing and collecting do not touch the large rows.
# A content is stored as it is where its stored length is its length. A history is a BLOB: not every str is SQLite text.
MIGRATIONS: Sequence[str] = (
    f"""
    PRAGMA application_id = {APPLICATION_ID};
    CREATE TABLE contents (key INTEGER PRIMARY KEY, stored BLOB NOT NULL);
    CREATE TABLE pages (id TEXT PRIMARY KEY, key INTEGER NOT NULL, bytes INTEGER NOT NULL,
        stored_bytes INTEGER NOT NULL, last_put REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE listings (place INTEGER PRIMARY KEY, history BLOB NOT NULL, page TEXT NOT NULL,
        UNIQUE (history, page));
    CREATE TABLE holds (history BLOB NOT NULL, page TEXT NOT NULL, PRIMARY KEY (history, page)) WITHOUT ROWID;
    """,
    # `collections` tells an index whether keys and places may have been given away again. A page that was `sunk` is in
    # the history sink, and stays noted when the store has collected it.
    """
    ALTER TABLE listings ADD COLUMN kind TEXT NOT NULL DEFAULT '';
    ALTER TABLE listings ADD COLUMN name BLOB NOT NULL DEFAULT x'';
    ALTER TABLE listings ADD COLUMN first_put REAL NOT NULL DEFAULT 0;
    CREATE TABLE facts (identity TEXT NOT NULL, collections INTEGER NOT NULL);
    INSERT INTO facts VALUES (lower(hex(randomblob(8))), 0);
    CREATE TABLE awaiting (place INTEGER PRIMARY KEY, owner TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX awaiting_in_turn ON awaiting (owner, tries, place);
    CREATE TABLE sunk (page TEXT NOT NULL, history BLOB NOT NULL, PRIMARY KEY (page, history)) WITHOUT ROWID;
    """,
    "CREATE TABLE shown (text TEXT PRIMARY KEY, page TEXT NOT NULL) WITHOUT ROWID",
    # A listing, a hold and what was sent belong to a scope. What was put before there were scopes is the user's own, of
    # no project; notes, which were told apart by their names alone, get the project of notes. A page of no history is
    # listed under x''.
    """
    CREATE TABLE scopes (number INTEGER PRIMARY KEY, principal BLOB NOT NULL, project BLOB NOT NULL,
        UNIQUE (principal, project));
    INSERT INTO scopes VALUES (1, x'', x''), (2, x'', CAST(char(0) || 'notes' AS BLOB));
    CREATE TABLE scoped (place INTEGER PRIMARY KEY, scope INTEGER NOT NULL, history BLOB NOT NULL, page TEXT NOT NULL,
        kind TEXT NOT NULL DEFAULT '', name BLOB NOT NULL DEFAULT x'', first_put REAL NOT NULL DEFAULT 0,
        UNIQUE (scope, history, page));
    INSERT INTO scoped SELECT place, CASE WHEN kind = '' AND name = x'' AND (
        substr(history, 1, 5) IN (CAST('note-' AS BLOB), CAST('turn-' AS BLOB))
        OR substr(history, 1, 6) IN (CAST('began-' AS BLOB), CAST('shown:' AS BLOB))
        OR substr(history, 1, 10) = CAST('reasoning-' AS BLOB)) THEN 2 ELSE 1 END,
        history, page, kind, name, first_put FROM listings;
    INSERT INTO scoped (scope, history, page, first_put)
        SELECT 1, x'', id, last_put FROM pages WHERE id NOT IN (SELECT page FROM listings);
    DROP TABLE listings;
    ALTER TABLE scoped RENAME TO listings;
    CREATE INDEX listings_of_page ON listings (page, scope);
    ALTER TABLE holds RENAME TO old_holds;
    CREATE TABLE holds (scope INTEGER NOT NULL, history BLOB NOT NULL, page TEXT NOT NULL,
        PRIMARY KEY (scope, history, page)) WITHOUT ROWID;
    INSERT INTO holds SELECT 1, history, page FROM old_holds;
    DROP TABLE old_holds;
    ALTER TABLE sunk RENAME TO old_sunk;
    CREATE TABLE sunk (scope INTEGER NOT NULL, page TEXT NOT NULL, history BLOB NOT NULL,
        PRIMARY KEY (scope, page, history)) WITHOUT ROWID;
    INSERT INTO sunk SELECT 1, page, history FROM old_sunk;
    DROP TABLE old_sunk;
    ALTER TABLE shown RENAME TO old_shown;
    CREATE TABLE shown (principal BLOB NOT NULL, text TEXT NOT NULL, page TEXT NOT NULL,
        PRIMARY KEY (principal, text)) WITHOUT ROWID;
    INSERT INTO shown SELECT x'', text, page FROM old_shown;
    DROP TABLE old_shown;
    """,
    # A history whose turns are noted holds its pages for as long as its last turn is young enough; a hold of any other,
    # such as the journal's, has no end. Holds of conversations from before that count from when their pages were put.
    # A content that was `redacted` before it was stored is a page of its own, which the original's id leads to.
    """
    CREATE TABLE turns (scope INTEGER NOT NULL, history BLOB NOT NULL, last REAL NOT NULL,
        PRIMARY KEY (scope, history)) WITHOUT ROWID;
    INSERT INTO turns SELECT scope, history, max(coalesce(last_put, 0)) FROM holds LEFT JOIN pages ON id = page
        WHERE substr(history, 1, 8) != CAST('journal ' AS BLOB) GROUP BY scope, history;
    CREATE INDEX holds_of_page ON holds (page);
    CREATE INDEX shown_of_page ON shown (page);
    ALTER TABLE facts ADD COLUMN collect_after REAL NOT NULL DEFAULT 0;
    CREATE TABLE redacted (original TEXT PRIMARY KEY, page TEXT NOT NULL, kinds TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX redacted_page ON redacted (page);
    """,
)
