#!/usr/bin/env python3
"""SQLite as Python knows it. The target is a synchronous setting: off, normal or full.

    rqps compare client:normal client:full --bench client:clients/python/sqlite_client.py
"""
import os
import random
import sqlite3

from rqps_client import serve


class Sqlite:
    steps = {"point": "point", "range": "range", "insert": "write"}

    def open(self, target, folder, client, seed, rows, **_):
        self.session = sqlite3.connect(os.path.join(folder, "client.db"), isolation_level=None)
        self.session.execute("PRAGMA journal_mode = wal")
        self.session.execute(f"PRAGMA synchronous = {target}")
        self.random, self.rows = random.Random(seed * 1000 + client), rows
        return f"SQLite {sqlite3.sqlite_version}"

    def load(self, rows, loading):
        self.session.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        self.session.execute("BEGIN")
        values = ((row, f"value {row}") for row in range(rows))
        self.session.executemany("INSERT INTO t VALUES (?, ?)", values)
        self.session.execute("COMMIT")
        return rows

    def point(self):
        key = self.random.randrange(self.rows)
        self.session.execute("SELECT v FROM t WHERE id = ?", (key,)).fetchone()

    def range(self):
        key = self.random.randrange(self.rows)
        self.session.execute("SELECT v FROM t WHERE id >= ? LIMIT 100", (key,)).fetchall()

    def insert(self):
        self.session.execute("INSERT INTO t (v) VALUES ('new')")


serve(Sqlite())
