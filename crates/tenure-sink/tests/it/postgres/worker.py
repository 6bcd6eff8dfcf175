"""One step of a worker in Python: URL RESOURCE EPOCH GRANT OPERATION VALUE.

The token came with the work. Check, effect and record are one transaction; a refusal is an exception with its own SQLSTATE.
"""
import hashlib
import sys

import psycopg2

url, resource, epoch, grant, operation, value = sys.argv[1:]
connection = psycopg2.connect(url)
try:
    with connection, connection.cursor() as cursor:
        digest = hashlib.sha256(value.encode()).digest()
        cursor.execute(
            "SELECT verdict, outcome FROM tenure.apply(%s, %s, %s, %s, %s, %s)",
            (resource, int(epoch), grant, operation, digest, value),
        )
        verdict, outcome = cursor.fetchone()
        if verdict == "written":
            cursor.execute(
                "INSERT INTO shop VALUES (%s, %s) ON CONFLICT (resource) DO UPDATE SET value = excluded.value",
                (resource, value),
            )
    print(verdict, outcome)
except psycopg2.Error as error:
    sys.exit(f"{error.pgcode} {error.diag.message_primary}: {error.diag.message_hint}")
