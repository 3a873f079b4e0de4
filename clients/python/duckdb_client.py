#!/usr/bin/env python3
"""DuckDB. The library is the target: a folder into which pip has put it.

    pip install duckdb==1.4.4 --target ~/duckdb-1.4.4
    pip install duckdb==2.0.1 --target ~/duckdb-2.0.1
    rqps compare client:$HOME/duckdb-1.4.4 client:$HOME/duckdb-2.0.1 \\
        --bench client:clients/python/duckdb_client.py --set rows=1M
"""
import os
import random
import sys

from rqps_client import serve


class DuckDb:
    steps = {"point": "point", "group": "range", "join": "range", "window": "range", "insert": "write"}

    def open(self, target, folder, client, seed, rows, options, **_):
        sys.path.insert(0, target)
        import duckdb

        threads = {"threads": int(options.get("threads", 1))}
        self.session = duckdb.connect(os.path.join(folder, "client.db"), config=threads)
        self.random, self.rows = random.Random(seed * 1000 + client), rows
        return f"DuckDB {duckdb.__version__}"

    def load(self, rows, loading):
        self.session.execute(
            "CREATE TABLE t AS SELECT i AS id, i % 1000 AS k, hash(i) % 100000 AS v,"
            " 'text ' || i AS c FROM range(?) AS r(i)", (rows,))
        self.session.execute("CREATE UNIQUE INDEX t_id ON t (id)")
        self.session.execute("CREATE TABLE names AS SELECT i AS k, 'name ' || i AS name FROM range(1000) AS r(i)")
        self.session.execute("CHECKPOINT")
        return rows

    def query(self, sql, *values):
        return self.session.execute(sql, values).fetchall()

    def point(self):
        self.query("SELECT c FROM t WHERE id = ?", self.random.randrange(self.rows))

    def group(self):
        self.query("SELECT k, count(*), sum(v) FROM t WHERE v > ? GROUP BY k", self.random.randrange(1000))

    def join(self):
        self.query("SELECT name, max(v) FROM t JOIN names USING (k) WHERE v > ? GROUP BY name",
                   self.random.randrange(1000))

    def window(self):
        self.query("SELECT k, id, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t QUALIFY r <= 3 AND k = ?",
                   self.random.randrange(1000))

    def insert(self):
        self.query("INSERT INTO t VALUES (?, 1, 1, 'new')", self.rows + self.random.getrandbits(40))


serve(DuckDb())
