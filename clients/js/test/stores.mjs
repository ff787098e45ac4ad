// Tests of a stock client with a real server that is killed in between: on a file, and if all of it is
// asked for on Redis, too.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort, needsServer, Server } from './server.mjs';

/** The agents that every such client is tested with. */
export const agents = `
agents:
  - name: demo
    tools: [current_time, calculate, wait, lookup, ask_person, update_plan]
  - name: careful
    tools: [charge_card]
    middleware:
      - toolPermission: { rules: [{ tool: charge_card, then: ask }], default: allow }
`;

/**
 * Servers with the agents of config, by store, for the tests of a file; and scenario, which makes a test on
 * each store. A scenario that is not often needed is only made with all.
 */
export function onStores(config, all, silent) {
  const redis = all && spawnSync('redis-server', ['--version']).status === 0;
  if (all && !redis && process.env.HOLDFAST_REQUIRE_ALL === '1') throw new Error('redis-server is missing');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-stores-'));
  const servers = {};
  let store;

  async function serve(url) {
    const args = ['--config', join(folder, 'holdfast.yaml'), '--demo-delay=2ms', '--demo-journal', join(folder, 'journal')];
    return new Server(await freePort(), args, url).start();
  }

  before(async () => {
    if (needsServer.skip) return;
    writeFileSync(join(folder, 'holdfast.yaml'), config);
    servers.file = await serve();
    if (!redis) return;
    const port = await freePort();
    store = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], { stdio: ['ignore', 'pipe', 'ignore'] });
    await new Promise((done) => store.stdout.on('data', (text) => String(text).includes('Ready to accept') && done()));
    servers.redis = await serve(`redis://127.0.0.1:${port}`);
  });
  after(async () => {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
    store?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  function scenario(name, run, often = true) {
    if (!often && !all) return;
    for (const kind of all ? ['file', 'redis'] : ['file']) {
      const skip = needsServer.skip || (kind === 'redis' && !redis && 'redis-server is missing');
      test(`${name} (${kind})`, { skip }, async (t) => {
        await run(servers[kind], t);
        await silent();
      });
    }
  }
  return { servers, scenario };
}
