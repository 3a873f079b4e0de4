'use strict';
// Helper for clients of rqps in Node (docs/clients.md). Write an object with the methods that you
// need and call serve(object). Steps are methods that do one event each, with or without a promise.
//
//     serve({
//       steps: { get: 'point', set: 'write' },                  // name: point, range or write
//       async open({ target, client, clients, seed, rows, folder, options }) { … },
//       async load(rows, loading) { … return rows; },           // optional
//       async get() { … },                                      // one event
//     });
//
// An event that fails in a way that a rate survives throws new Failed('code'): it is counted, not
// timed.
const readline = require('node:readline');
const { performance } = require('node:perf_hooks');

class Failed extends Error {}

const now = () => Math.round(performance.now() * 1e6);

// Eight bits of a latency: within one per cent.
function rounded(latency) {
  const step = 2 ** Math.max(Math.floor(Math.log2(latency)) - 7, 0);
  return Math.floor(latency / step) * step;
}

// Does events for so many microseconds, one at least.
async function run(event, us) {
  const hist = new Map();
  const errors = {};
  let events = 0;
  const begun = now();
  let last = begun;
  do {
    let failed = null;
    try {
      const pending = event();
      // A client without promises does not pay for one.
      if (pending instanceof Promise) await pending;
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      failed = error.message;
    }
    const end = now();
    if (failed === null) {
      const latency = rounded(end - last);
      hist.set(latency, (hist.get(latency) ?? 0) + 1);
      events += 1;
    } else {
      errors[failed] = (errors[failed] ?? 0) + 1;
    }
    last = end;
  } while (last < begun + us * 1000);
  const answer = { n: events, us: (last - begun) / 1000, hist: Object.fromEntries(hist) };
  return Object.keys(errors).length > 0 ? { ...answer, errors } : answer;
}

// Answers rqps until it closes the input. What the client logs goes to standard error.
async function serve(client) {
  console.log = console.info = console.debug = console.error;
  const say = (answer) => process.stdout.write(JSON.stringify(answer) + '\n');
  let event = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [[question, said]] = Object.entries(JSON.parse(line));
    if (question === 'hello') {
      const steps = Object.entries(client.steps).map(([name, group]) => ({ name, group }));
      say({ hello: 1, steps, load: client.load !== undefined });
    } else if (question === 'open') {
      const version = await client.open(said);
      say(version ? { version } : {});
    } else if (question === 'load') {
      say({ rows: await client.load(said, (rows) => say({ loading: rows })) });
    } else if (question === 'prepare') {
      event = client[said].bind(client);
      say({});
    } else if (question === 'run') {
      say(await run(event, said));
    } else {
      say({ error: `this helper knows no ${question}` });
    }
  }
  // A connection that is open would keep the process.
  process.exit(0);
}

module.exports = { Failed, serve };
