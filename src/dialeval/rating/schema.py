"""The tables of a rating job, the same in SQLite and PostgreSQL.

`ratings` only grows: a changed mind is a new row, and the row with the highest `number` of a rater
and position counts. Triggers refuse to change or delete rows, whoever asks. What a browser sends
twice is stored once: `submission` is a name that it made for what it sends.

Texts are JSON with escapes, so that no database has to understand what strangers wrote (PostgreSQL
takes no NUL, and neither takes half of a surrogate pair). There are no names of people, no
addresses and no browsers in here.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 2
MARK = "dialeval_rating"
"""The table that tells a rating database from any other."""

metadata = MetaData()

facts = Table(
    MARK,
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""`schema_version`, `job` (JSON), `organiser` (the code in the organiser's link), `secret`."""

tasks = Table(
    "tasks",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("record", Text, nullable=False),
)

raters = Table(
    "raters",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("token", Text, nullable=False, unique=True),
)

assignments = Table(
    "assignments",
    metadata,
    Column("rater", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("task", Integer, nullable=False),
    Column("is_repeat", Boolean, nullable=False),
    Column("is_flipped", Boolean, nullable=False),
    ForeignKeyConstraint(["rater"], ["raters.number"]),
    ForeignKeyConstraint(["task"], ["tasks.number"]),
)

ratings = Table(
    "ratings",
    metadata,
    Column(
        "number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    Column("rater", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("submission", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("answers", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("saved_at", Text, nullable=False),
    UniqueConstraint("rater", "position", "submission", "revision"),
    ForeignKeyConstraint(["rater", "position"], ["assignments.rater", "assignments.position"]),
    Index("ratings_of_a_position", "rater", "position", "number"),
    sqlite_autoincrement=True,
)

_REFUSALS = {
    "sqlite": [
        f"CREATE TRIGGER ratings_refuse_{verb.lower()} BEFORE {verb} ON ratings"
        " BEGIN SELECT RAISE(ABORT, 'ratings are only added'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION ratings_are_only_added() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'ratings are only added'; END $$",
        "CREATE TRIGGER ratings_refuse_changes BEFORE UPDATE OR DELETE ON ratings"
        " FOR EACH ROW EXECUTE FUNCTION ratings_are_only_added()",
    ],
}


def create_tables(connection: Connection) -> None:
    """Creates all tables, in the transaction of the caller."""
    metadata.create_all(connection, checkfirst=False)
    for statement in _REFUSALS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
