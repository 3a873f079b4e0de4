#!/usr/bin/env node
'use strict';
// Redis, Valkey, KeyDB, Dragonfly: whatever speaks RESP, without a package.
//
//     rqps compare a=redis://127.0.0.1:7001 b=redis://127.0.0.1:7002 \
//         --bench client:clients/node/redis_client.js
const net = require('node:net');
const { serve } = require('./rqps_client.js');

// One command after the other; replies of one line, or of one string.
class Session {
  constructor(target) {
    const { hostname, port } = new URL(target);
    this.text = '';
    this.socket = net.connect({ host: hostname, port: Number(port || 6379), noDelay: true });
    this.socket.setEncoding('latin1').on('data', (data) => this.received(data));
    this.socket.on('error', (error) => { throw error; });
    this.socket.on('end', () => { throw new Error('the server closed the connection'); });
  }

  send(...words) {
    const parts = words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`);
    this.socket.write(`*${words.length}\r\n${parts.join('')}`);
    return new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
  }

  received(data) {
    this.text += data;
    const end = this.text.indexOf('\r\n');
    if (end < 0) return;
    const head = this.text.slice(0, end);
    const length = head[0] === '$' ? Number(head.slice(1)) : -1;
    if (length >= 0 && this.text.length < end + 2 + length + 2) return;
    const reply = length >= 0 ? this.text.substr(end + 2, length) : head.slice(1);
    this.text = '';
    if (head[0] === '-') this.reject(new Error(reply));
    else this.resolve(reply);
  }
}

serve({
  steps: { get: 'point', set: 'write', incr: 'write' },

  async open({ target, client, seed, rows }) {
    Object.assign(this, { session: new Session(target), state: seed * 1000 + client + 1, rows });
    const info = await this.session.send('INFO', 'server');
    return `Redis ${/redis_version:(\S+)/.exec(info)[1]}`;
  },

  async load(rows, loading) {
    for (let first = 0; first < rows; first += 1000) {
      const last = Math.min(first + 1000, rows);
      const keys = Array.from({ length: last - first }, (_, row) => `key${first + row}`);
      await this.session.send('MSET', ...keys.flatMap((key) => [key, 'x'.repeat(100)]));
      loading(last);
    }
    return rows;
  },

  // Math.random has no seed, so a generator of Lehmer: the same keys on every target.
  key() {
    this.state = (this.state * 48271) % 2147483647;
    return `key${this.state % this.rows}`;
  },

  get() { return this.session.send('GET', this.key()); },
  set() { return this.session.send('SET', this.key(), 'y'.repeat(100)); },
  incr() { return this.session.send('INCR', 'counter'); },
});
