#!/usr/bin/env python3
"""Redis, Valkey, KeyDB, Dragonfly: whatever speaks RESP.

    pip install redis --target ~/modules
    rqps compare a=redis://127.0.0.1:7001 b=redis://127.0.0.1:7002 \\
        --bench client:clients/python/redis_client.py -- --modules=$HOME/modules
"""
import random

from rqps_client import serve


class Redis:
    steps = {"get": "point", "mget": "range", "set": "write", "incr": "write"}

    def open(self, target, client, seed, rows, **_):
        import redis

        self.session = redis.Redis.from_url(target)
        self.random, self.rows = random.Random(seed * 1000 + client), rows
        return "Redis " + self.session.info("server")["redis_version"]

    def load(self, rows, loading):
        for first in range(0, rows, 1000):
            last = min(first + 1000, rows)
            self.session.mset({f"key{row}": "x" * 100 for row in range(first, last)})
            loading(last)
        return rows

    def key(self):
        return f"key{self.random.randrange(self.rows)}"

    def get(self):
        self.session.get(self.key())

    def mget(self):
        self.session.mget([self.key() for _ in range(100)])

    def set(self):
        self.session.set(self.key(), "y" * 100)

    def incr(self):
        self.session.incr("counter")


serve(Redis())
