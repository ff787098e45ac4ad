// Studio in a real browser, against the real server: what a person does with it, at all the
// moments at which it could go wrong, with axe in every state.
//
//   node web/test/browser.mjs path/to/holdfast [--shots DIRECTORY] [--limit SECONDS] [SUITE...]
//
// Each suite has a server and a browser context of its own, and they run side by side. What
// they wait for has a limit, and all of them together have one: they say where they stood.
// Without Chromium it says so and succeeds, unless HOLDFAST_REQUIRE_ALL=1.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { launch } from './cdp.mjs';
import { chromium, serve } from './harness.mjs';
import { screen } from './screen.mjs';

const { values: { shots, limit }, positionals: [binary, ...wanted] } = parseArgs({ options: { shots: { type: 'string' }, limit: { type: 'string', default: '420' } }, allowPositionals: true });
if (!binary || !(Number(limit) > 0)) throw new Error('usage: node web/test/browser.mjs path/to/holdfast [--shots DIRECTORY] [--limit SECONDS] [SUITE...]');
const program = chromium();
if (!program) {
  console.log('browser tests skipped: no Chromium here (apt-get install chromium, or set CHROMIUM)');
  process.exit(process.env.HOLDFAST_REQUIRE_ALL === '1' ? 1 : 0);
}
if (shots) mkdirSync(shots, { recursive: true });

/** The longest first, so that they end together. */
const names = ['talk', 'past', 'hostile', 'operate', 'middleware', 'access', 'kill'].filter((n) => wanted.length === 0 || wanted.includes(n));
/** More of them at a time would only wait for each other. */
const lanes = Number(process.env.LANES ?? 3);

// A killed server refuses connections, what a test asks to be refused is refused, and what may
// not be there is asked for: a thread, and in a fork the log of a run of its parent.
const allowed = /ERR_(CONNECTION|SOCKET|INCOMPLETE|EMPTY|NETWORK)|status of (401|403|409)|status of 404.*(\/threads\/[^/]+|\/log\?\S*)$/;

/** The part of each suite that is under way, and since when. */
const under = new Map();

/** Ends everything, and says where it stood. Processes that were started end with this one. */
function giveUp(why) {
  console.log(`FAILED: ${why}; under way:`);
  for (const [name, { part, since }] of under) console.log(`  ${name}: ${part} (for ${((performance.now() - since) / 1000).toFixed(0)} s)`);
  process.exit(1);
}

let failed = false;

function fail(where, why) {
  failed = true;
  console.log(`FAILED ${where}\n${why}`);
}

/** Runs the parts of a suite one after the other. */
async function run(name, browser) {
  let part;
  const begin = (next) => {
    part = next;
    under.set(name, { part, since: performance.now() });
  };
  let server;
  let browserContextId;
  const tabs = [];
  const open = async () => {
    const s = await screen(browser, { browserContextId });
    tabs.push(s);
    return Object.assign(s, { shut: async () => { s.check(); tabs.splice(tabs.indexOf(s), 1); seen.push(s); await s.close(); }, check() {
      assert.deepEqual(s.complaints.splice(0).filter((c) => !allowed.test(c)), [], 'the console and the page’s policy have nothing to say');
    } });
  };
  const seen = [];
  const shot = (picture) => shots && tabs.at(-1).shoot(join(shots, `${picture}.png`));
  try {
    begin('its server and its tab');
    const suite = await import(`./suites/${name}.mjs`);
    server = await serve(binary, { ...suite.setup, env: { HOLDFAST_DEMO_DELAY: '3ms', ...suite.setup?.env } });
    server.file = (path, text) => {
      writeFileSync(join(server.dir, path), text);
      return join(server.dir, path);
    };
    await server.start(suite.setup?.first?.(server));
    ({ browserContextId } = await browser.send('Target.createBrowserContext'));
    const s = await open();
    for (const next of Object.keys(suite.default)) {
      begin(next);
      const began = performance.now();
      await suite.default[part]({ s, server, open, shot });
      for (const t of tabs) t.check();
      console.log(`ok ${name}: ${part} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
    }
    begin('how it looks and is built');
    const all = [...seen, ...tabs];
    assert.deepEqual(all.flatMap((t) => t.against), []);
    return all.flatMap((t) => t.states);
  } catch (err) {
    fail(`${name}: ${part}`, `${err.stack}\n${[...seen, ...tabs].flatMap((t) => [...t.complaints, ...t.against]).join('\n')}`);
    if (shots) await tabs[0]?.shoot(join(shots, `failed-${name}.png`)).catch(() => {});
    return [];
  } finally {
    begin(`its end, after ${part}`);
    if (browserContextId) await browser.send('Target.disposeBrowserContext', { browserContextId }).catch((err) => fail(`${name}: ${part}`, err.stack));
    await server?.close().catch((err) => fail(`${name}: ${part}`, err.stack));
    under.delete(name);
  }
}

const began = performance.now();
const over = setTimeout(() => giveUp(`not done within ${limit} s`), Number(limit) * 1000);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => giveUp(signal));
const browser = launch(program);
const waiting = [...names];
let states = 0;
try {
  await Promise.all(Array.from({ length: lanes }, async () => {
    for (let name; (name = waiting.shift());) {
      const seen = await run(name, browser);
      states += seen.length;
    }
  }));
} finally {
  await browser.close();
}
clearTimeout(over);
console.log(`${failed ? 'FAILED' : 'ok'}: ${states} states without a violation, ${((performance.now() - began) / 1000).toFixed(0)} s`);
process.exit(failed ? 1 : 0);
