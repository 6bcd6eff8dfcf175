#!/usr/bin/env python3
"""A worker that writes one document into a SQLite database. Python's standard library is all that it needs.

    worker.py write FILE            as workers are: it writes what it has, whoever's turn it is
    worker.py write --fenced FILE   checks its token in the transaction of the write
    worker.py read FILE             prints the document
    worker.py refusals FILE         prints how many late writes the database has refused
"""

import os
import sqlite3
import sys
import time


class Refused(Exception):
    """The token is not the one that is registered."""


def admit(db, token):
    """Checks a token as a sealed fence of Tenure does. Call it inside of the transaction of the write."""
    resource, _, rest = token.rpartition("@")
    epoch, _, grant = rest.partition(":")
    epoch = int(epoch)
    row = db.execute(
        """SELECT n.schema_version, n.rule, n.identity || ':' || n.reopen_count, n.floor,
                  f.epoch, f.grant_id, f.generation
           FROM tenure_sink_namespace AS n LEFT JOIN tenure_sink_fence AS f ON f.resource = ?
           WHERE n.only = 1""",
        (resource,),
    ).fetchone()
    if row is None:
        raise Refused("no fence is installed here")
    version, rule, present, floor, current, registered, generation = row
    if (version, rule) != (1, "sealed"):
        raise SystemExit(f"this worker does not know the fence {rule} of version {version}")
    newest = current or floor
    if newest is not None and epoch < newest or current is None and epoch == floor:
        raise Refused(f"stale: epoch {epoch} was shown, and {newest} is registered")
    if current is None or epoch > current or generation != present:
        raise Refused(f"unsealed: epoch {epoch} is not registered here")
    if grant != registered:
        raise Refused(f"conflict: epoch {epoch} is registered for another grant")


def write(path, fenced):
    text = f"version of worker {os.environ.get('TENURE_PROBE_WORKER', '?')}"
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    db.execute("CREATE TABLE IF NOT EXISTS document (only INTEGER PRIMARY KEY CHECK (only = 1), text TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS refused (token TEXT, why TEXT)")

    print("ready to write", flush=True)
    time.sleep(0.5)  # the last of the work

    token = os.environ["TENURE_TOKEN"] if fenced else None
    # The check and the write are one transaction. IMMEDIATE: nobody can take over between the two.
    db.execute("BEGIN IMMEDIATE")
    try:
        if fenced:
            admit(db, token)
        db.execute("INSERT OR REPLACE INTO document VALUES (1, ?)", (text,))
        db.execute("COMMIT")
    except Refused as why:
        # The refused transaction holds nothing, also no record of it: that is a transaction of its own.
        db.execute("ROLLBACK")
        db.execute("INSERT INTO refused VALUES (?, ?)", (token, str(why)))
        print(f"refused: {why}", flush=True)
        return 1
    print(f"written: {text}", flush=True)
    return 0


def show(path, query):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
    for row in db.execute(query):
        print(row[0])
    return 0


def main(words):
    match words:
        case ["write", path]:
            return write(path, fenced=False)
        case ["write", "--fenced", path]:
            return write(path, fenced=True)
        case ["read", path]:
            return show(path, "SELECT text FROM document")
        case ["refusals", path]:
            return show(path, "SELECT count(*) FROM refused")
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
