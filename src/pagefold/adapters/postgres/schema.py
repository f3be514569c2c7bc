"""The tables of a store in Postgres, as the steps that bring a database of any earlier version up to date.

Two versions of pagefold may run on one database: a step only adds, so that the versions before it go on. One that has
to take something away raises `readable_from` to the first version that does without it, and comes a release later.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pagefold.adapters.access_rows import SCHEMA as ACCESS
from pagefold.adapters.postgres.server import Connection, Server
from pagefold.errors import StoreError

_LOCK = 0x70666F6C64  # any number, but the same in every version


_VERSIONS = "CREATE TABLE IF NOT EXISTS pagefold_versions (number int PRIMARY KEY, readable_from int NOT NULL)"


class Migration(NamedTuple):
    """A step, and the first version that can use a database after it."""

    statements: str
    readable_from: int = 1


# Foreign text is bytea: not every str is Postgres text. A page goes with all that names it. A content is packed already
# (EXTERNAL has Postgres not try). `decided` marks a note that was put where there was none: of these there is one for a
# name. `unindexed` has the listings that no search has looked at yet.
MIGRATIONS: Sequence[Migration] = (
    Migration("""
    CREATE TABLE facts (identity text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
        collect_after double precision NOT NULL DEFAULT 0, checked bigint NOT NULL DEFAULT 0);
    INSERT INTO facts DEFAULT VALUES;
    CREATE TABLE scopes (number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal bytea NOT NULL,
        project bytea NOT NULL, UNIQUE (principal, project));
    CREATE TABLE pages (id text COLLATE "C" PRIMARY KEY, bytes bigint NOT NULL, stored_bytes bigint NOT NULL,
        last_put double precision NOT NULL, stored bytea NOT NULL);
    ALTER TABLE pages ALTER COLUMN stored SET STORAGE EXTERNAL;
    CREATE TABLE listings (place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, scope int NOT NULL,
        history bytea NOT NULL, page text COLLATE "C" NOT NULL REFERENCES pages ON DELETE CASCADE,
        kind text NOT NULL DEFAULT '', name bytea NOT NULL DEFAULT '', first_put double precision NOT NULL DEFAULT 0,
        decided boolean, UNIQUE (scope, history, page));
    CREATE INDEX listings_of_page ON listings (page, scope);
    CREATE INDEX listings_in_order ON listings (scope, history, place);
    CREATE UNIQUE INDEX decisions ON listings (scope, history) WHERE decided;
    CREATE TABLE holds (scope int NOT NULL, history bytea NOT NULL, page text COLLATE "C" NOT NULL,
        PRIMARY KEY (scope, history, page));
    CREATE INDEX holds_of_page ON holds (page);
    CREATE TABLE turns (scope int NOT NULL, history bytea NOT NULL, last double precision NOT NULL,
        PRIMARY KEY (scope, history));
    CREATE TABLE shown (principal bytea NOT NULL, text text COLLATE "C" NOT NULL,
        page text COLLATE "C" NOT NULL REFERENCES pages ON DELETE CASCADE, PRIMARY KEY (principal, text));
    CREATE INDEX shown_of_page ON shown (page);
    CREATE TABLE redacted (original text COLLATE "C" PRIMARY KEY,
        page text COLLATE "C" NOT NULL REFERENCES pages ON DELETE CASCADE, kinds text NOT NULL);
    CREATE INDEX redacted_page ON redacted (page);
    CREATE TABLE awaiting (place bigint PRIMARY KEY REFERENCES listings ON DELETE CASCADE, owner text NOT NULL,
        tries int NOT NULL DEFAULT 0);
    CREATE INDEX awaiting_in_turn ON awaiting (owner, tries, place);
    CREATE TABLE sunk (scope int NOT NULL, page text COLLATE "C" NOT NULL, history bytea NOT NULL,
        PRIMARY KEY (scope, page, history));
    CREATE TABLE unindexed (place bigint PRIMARY KEY REFERENCES listings ON DELETE CASCADE);
    CREATE TABLE documents (page text COLLATE "C" NOT NULL REFERENCES pages ON DELETE CASCADE, place bigint NOT NULL,
        words text[] COLLATE "C" NOT NULL, PRIMARY KEY (page, place));
    CREATE INDEX documents_words ON documents USING gin (words);
    CREATE TABLE journal_lines (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, principal bytea NOT NULL,
        owner bytea NOT NULL, token bytea, scope bytea NOT NULL, key bytea NOT NULL, entry text NOT NULL,
        state text NOT NULL, reason text, detail bytea NOT NULL, boundary text, version bigint,
        staged_at double precision NOT NULL, UNIQUE (principal, scope, key, version), UNIQUE (principal, owner, token));
    CREATE INDEX journal_pending ON journal_lines (principal, owner, number) WHERE state IN ('staged', 'validated');
    """),
    # Large contents in object storage. An object whose row goes, for whatever reason, is noted as one to delete.
    Migration("""
    CREATE TABLE bodies (page text COLLATE "C" NOT NULL REFERENCES pages ON DELETE CASCADE, scope int NOT NULL,
        key text COLLATE "C" NOT NULL UNIQUE, stored_bytes bigint NOT NULL, PRIMARY KEY (page, scope));
    CREATE TABLE objects_to_delete (key text COLLATE "C" PRIMARY KEY, due timestamptz NOT NULL DEFAULT now());
    CREATE FUNCTION note_removed_body() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO objects_to_delete (key) VALUES (OLD.key) ON CONFLICT (key) DO UPDATE SET due = now();
        RETURN OLD;
    END $$;
    CREATE TRIGGER body_removed AFTER DELETE ON bodies FOR EACH ROW EXECUTE FUNCTION note_removed_body();
    """),
    # Teams, tokens, use and the audit log.
    Migration(ACCESS),
)


def version_of(db: Connection) -> tuple[int, int]:
    """The version of the database, and the first version of pagefold that can use it; zeros where it has no tables."""
    if db.execute("SELECT to_regclass('pagefold_versions')").fetchone() == (None,):
        return 0, 0
    row = db.execute("SELECT max(number), max(readable_from) FROM pagefold_versions").fetchone()
    return (row[0] or 0, row[1] or 0) if row else (0, 0)


def migrate(server: Server, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Brings the database up to date, whichever instance is first; returns how many steps that took.

    A newer one is used as it is, where that is possible. Raises StoreError.
    """
    newest = len(migrations)
    version, readable_from = server.run(version_of)
    if version < newest:
        with server.transaction() as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # Not asked whether it is there: whoever waited for the lock may not have heard of it yet.
            db.execute(_VERSIONS)
            before, readable_from = version_of(db)
            for number, step in enumerate(migrations[before:], before + 1):
                db.execute(step.statements.encode())
                db.execute("INSERT INTO pagefold_versions VALUES (%s, %s)", (number, step.readable_from))
            return max(0, newest - before)
    if readable_from > newest:
        raise StoreError(
            f"the store {server.where} was made by a newer pagefold (it needs version {readable_from}, the newest "
            f"known here is {newest}): upgrade pagefold or name another database",
            kind="newer",
        )
    return 0
