// A deployment: two servers share a Redis, and the one that runs a conversation is shut down.
// The person in front of it is back at the other one within a second, and who watches it at
// the other one all the time notices nothing. `make takeover` looks at the clock.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { freePort, HoldfastAgent, needsServer, onNth, same, say, Server, silent, watch } from './client.mjs';

const redis = spawnSync('redis-server', ['--version']).status === 0;
if (!redis && process.env.HOLDFAST_REQUIRE_ALL === '1') throw new Error('redis-server is missing');
const skip = needsServer.skip || (redis ? false : 'redis-server is missing');

/** Sends new connections to the server that `to` returns, as a load balancer does. */
async function balancer(to) {
  const server = createServer((client) => {
    const there = connect(to().port, '127.0.0.1');
    const end = () => {
      client.destroy();
      there.destroy();
    };
    client.on('error', end).on('close', end).pipe(there);
    there.on('error', end).on('end', () => client.end()).pipe(client, { end: false });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/runs`, close: () => server.close() };
}

test('a server that shuts down hands over, and its reader is back within a second', { skip }, async (t) => {
  const port = await freePort();
  const store = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' });
  const servers = [];
  for (let i = 0; i < 2; i++) {
    servers.push(await new Server(await freePort(), ['--demo-delay=5ms'], `redis://127.0.0.1:${port}`).start());
  }
  let at = servers[0];
  const front = await balancer(() => at);
  try {
    const states = [];
    const agent = new HoldfastAgent({ url: front.url, onConnection: (state) => states.push(state) });
    let left;
    let last = 0;
    let longest = 0;
    const noticed = [];
    const other = new HoldfastAgent({ url: servers[1].url, threadId: agent.threadId, onConnection: (state) => noticed.push(state) });
    let attached;
    const attach = onNth('TEXT_MESSAGE_START', 2, () => {
      attached = watch((subscriber) => other.connectAgent({}, subscriber));
    });
    const leave = onNth('TOOL_CALL_RESULT', 5, () => {
      at = servers[1];
      left = servers[0].kill('SIGTERM');
    });
    const { error, types } = await say(agent, 'plan 10 steps', {
      seen: (event) => {
        const now = Date.now();
        longest = Math.max(longest, now - (last || now));
        last = now;
        attach(event);
        leave(event);
      },
    });
    assert.equal(error, undefined);
    assert.equal(await left, 0);
    assert.deepEqual(states, ['reconnecting', 'live']);
    assert.equal(types.filter((name) => name === 'RUN_STARTED').length, 1);
    t.diagnostic(`the reader saw nothing for ${longest} ms`);
    if (process.env.HOLDFAST_TIMED) assert.ok(longest < 1000, 'at most a second');
    await same(agent, servers[1]);
    const { finished, types: shown } = await attached;
    assert.ok(finished);
    assert.deepEqual(noticed, [], 'who watches at the other server has lost no connection');
    assert.equal(shown.filter((name) => name === 'RUN_STARTED').length, 1);
    await same(other, servers[1]);
    await silent();
  } finally {
    front.close();
    await Promise.all(servers.map((server) => server.stop()));
    store.kill('SIGKILL');
  }
});
