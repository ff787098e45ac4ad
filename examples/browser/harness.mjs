// Drives an example page in a real browser against a real server. What the pages of all
// clients have in common is here: a server that can be killed, a browser, the official
// schemas for every frame that a page receives, and a list of the charges that were made.
//
//   node test/browser.mjs path/to/holdfast [redis://…]
//
// A page's checks are functions by their name. ONLY=word runs those whose name has it,
// VERBOSE=1 shows the server's log. Without Chromium it says so and succeeds, unless
// HOLDFAST_REQUIRE_ALL=1.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, tab } from '../../web/test/cdp.mjs';
import { EventSchemas } from '../../test/oracle/node_modules/@ag-ui/core/dist/schemas.mjs';

// The demo model and the built-in tools. A charge under 100 is made without asking.
const config = `
agents:
  - name: demo
    policy: { chat: true }
    tools: [current_time, calculate, wait, lookup, ask_person, update_plan, charge_card]
  - name: careful
    policy: { chat: true }
    tools: [calculate, charge_card]
    middleware:
      - toolPermission: { rules: [{ tool: charge_card, then: ask }], default: allow }
  - name: asking
    policy: { chat: true }
    tools: [lookup, calculate, update_plan]
    middleware:
      - toolPermission: { rules: [{ tool: calculate, then: ask }], default: allow }
`;

const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, 'localhost', () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});

/** What the server is started with, besides its address and its store. */
const holdfast = (dir) => {
  writeFileSync(join(dir, 'holdfast.yaml'), config);
  return ['--config', join(dir, 'holdfast.yaml'), '--demo-journal', join(dir, 'journal')];
};

/** A server in a folder of its own, on the same port after each restart. */
class Server {
  constructor(binary, store, dir, port, args) {
    Object.assign(this, { binary, dir, api: `http://localhost:${port}`, journal: join(dir, 'journal') });
    this.args = ['--addr', `localhost:${port}`, '--store', store ?? `file:${join(dir, 'data')}`, ...args(dir)];
  }

  async start() {
    this.process = spawn(this.binary, this.args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: this.dir, env: { ...process.env, HOLDFAST_DEMO_KILL: 'false' } });
    if (process.env.VERBOSE) this.process.stderr.pipe(process.stderr, { end: false });
    await new Promise((done, fail) => {
      for (const out of [this.process.stdout, this.process.stderr]) out.on('data', (text) => String(text).includes('listening') && done());
      this.process.on('exit', (code) => fail(new Error(`the server ended with ${code}`)));
    });
  }

  kill() {
    if (this.process.exitCode !== null) return Promise.resolve();
    const gone = new Promise((done) => { this.process.removeAllListeners('exit').on('exit', done); });
    this.process.kill('SIGKILL');
    return gone;
  }

  async get(path) {
    return (await fetch(this.api + path)).json();
  }

  thread(id) { return this.get(`/threads/${id}`); }

  async messages(id) { return (await this.get(`/threads/${id}/messages`)).messages; }

  /** Waits until the thread's run has ended, and returns the thread. */
  async ended(id, seconds = 30) {
    for (const end = Date.now() + seconds * 1000; ;) {
      const now = await this.thread(id);
      if (now.status && now.status !== 'running') return now;
      if (Date.now() > end) throw new Error(`the run of ${id} never ended: ${JSON.stringify(now)}`);
      await new Promise((done) => { setTimeout(done, 30); });
    }
  }

  /** The amounts charged by now, by idempotency key. A key that is there twice was charged twice. */
  charges() {
    const lines = existsSync(this.journal) ? readFileSync(this.journal, 'utf8').split('\n') : [];
    const found = new Map();
    for (const [, key, amount] of lines.map((line) => /^charge key=(\S+) amount=(\S+)/.exec(line)).filter(Boolean)) {
      assert.ok(!found.has(key), `${key} was charged twice`);
      found.set(key, Number(amount));
    }
    return found;
  }
}

/** Checks what pages receive: each frame must be one as the official schemas have it. */
class Frames {
  count = 0;
  #wrong = [];
  #faults;
  #checked = [];
  #awaited = [];

  constructor(faults) { this.#faults = faults; }

  /** Resolves as soon as so many have come. */
  reaches(count) {
    return new Promise((here) => { this.#awaited.push({ count, here }); });
  }

  take(text) {
    this.count++;
    for (const { here } of this.#awaited.filter(({ count }) => count === this.count)) here();
    this.#checked.push(Promise.resolve(this.#faults(text)).then((found) => { this.#wrong.push(...found.map((fault) => `${text}: ${fault}`)); }));
  }

  /** What was wrong since the last time. */
  async faults() {
    await Promise.all(this.#checked.splice(0));
    return this.#wrong.splice(0);
  }
}

/** What the schemas of AG-UI say against a frame. */
export function faultsOfEvent(text) {
  const raw = JSON.parse(text);
  const { success, data, error } = EventSchemas.safeParse(raw);
  if (!success) return [error];
  return stripped(raw, data).map((path) => `the schema does not know ${path}`);
}

function stripped(raw, kept, path = '') {
  if (raw === null || typeof raw !== 'object') return [];
  return Object.keys(raw).flatMap((k) =>
    (kept && typeof kept === 'object' && k in kept ? stripped(raw[k], kept[k], `${path}.${k}`) : [`${path}.${k}`]));
}

// Runs in the page before its own scripts: hands each frame of each event stream over, and
// counts the streams. A page has more files than a browser notes by default.
const spy = `
  performance.setResourceTimingBufferSize(5000);
  const real = window.fetch;
  window.fetch = async (...args) => {
    const res = await real(...args);
    if (!res.body || !(res.headers.get('Content-Type') ?? '').startsWith('text/event-stream')) return res;
    const decoder = new TextDecoder();
    let text = '';
    const keep = new TransformStream({
      transform(chunk, controller) {
        text += decoder.decode(chunk, { stream: true });
        for (let end; (end = text.indexOf('\\n\\n')) >= 0; text = text.slice(end + 2)) {
          for (const line of text.slice(0, end).split('\\n')) if (line.startsWith('data:')) window.frame(line.slice(5));
        }
        controller.enqueue(chunk);
      },
    });
    const out = new Response(res.body.pipeThrough(keep), res);
    Object.defineProperty(out, 'url', { value: res.url });
    return out;
  };
`;

/** Opens a tab whose frames are checked. */
async function open(browser, frames, complaints) {
  const page = await tab(browser, complaints);
  await page.send('Runtime.addBinding', { name: 'frame' });
  browser.listeners.add((m) => m.method === 'Runtime.bindingCalled' && m.sessionId === page.session && m.params.name === 'frame' && frames.take(m.params.payload));
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: spy });
  const { until } = page;
  page.until = (expression, seconds) => until(`Boolean(${expression})`, seconds);
  page.click = (selector) => page.run(`document.querySelector(${JSON.stringify(selector)}).click()`);
  page.pressButton = (name, within = 'body') =>
    page.run(`[...document.querySelectorAll(${JSON.stringify(`${within} button`)})].find((b) => b.innerText.trim() === ${JSON.stringify(name)}).click()`);
  page.fill = async (selector, text) => {
    await page.run(`document.querySelector(${JSON.stringify(selector)}).select()`);
    await page.type(text);
  };
  return page;
}

/**
 * Runs the checks, each with ({ page, server, pages, openTab, dir, complaints, frames }), and ends the
 * process with 1 if one fails: by itself, by a frame that the official schemas do not
 * know, or by a charge that was made twice. faults is what such a schema says against a frame,
 * for pages that are not sent events of AG-UI. args(dir) is what a server of the page's own is
 * started with, besides its address and its store.
 */
export async function drive({ home, checks, faults = faultsOfEvent, args = holdfast }) {
  const programs = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean);
  const chromium = programs.find((p) => spawnSync(p, ['--version']).status === 0);
  if (!chromium) {
    console.log('browser test skipped: no Chromium here (apt-get install chromium, or set CHROMIUM)');
    process.exit(process.env.HOLDFAST_REQUIRE_ALL === '1' ? 1 : 0);
  }
  const [binary, store] = process.argv.slice(2);
  if (!binary) throw new Error('usage: node test/browser.mjs path/to/holdfast [store]');

  const dir = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
  const server = new Server(resolve(binary), store, dir, await freePort(), args);
  const files = spawn(process.execPath, [fileURLToPath(new URL('serve.mjs', import.meta.url)), '0'], { stdio: ['ignore', 'pipe', 'inherit'], cwd: fileURLToPath(home) });
  const pages = await new Promise((done) => { files.stdout.once('data', (line) => done(String(line).trim())); });
  const browser = launch(chromium);
  const [frames, complaints] = [new Frames(faults), []];
  const openTab = () => open(browser, frames, complaints);
  let failed = 0;
  try {
    await server.start();
    const page = await openTab();
    for (const [name, check] of Object.entries(checks)) {
      if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
      const began = Date.now();
      try {
        await check({ page, server, pages, openTab, dir, complaints, frames });
        assert.deepEqual(await frames.faults(), []);
        server.charges();
        console.log(`ok   ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
      } catch (err) {
        failed++;
        console.log(`FAIL ${name}\n${err.stack}\n${complaints.slice(-3).join('\n')}`);
      }
      complaints.length = 0;
      await frames.faults();
    }
    console.log(`${frames.count} frames checked, ${server.charges().size} charges, none made twice`);
  } finally {
    await browser.close();
    await server.kill().catch(() => {});
    files.kill();
    rmSync(dir, { recursive: true, force: true });
  }
  process.exit(failed ? 1 : 0);
}
