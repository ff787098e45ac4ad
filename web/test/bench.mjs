// The page's bars, each the median of three, as the table in docs/studio.md. Exits with 1 if
// one is missed. The states for axe are those of browser.mjs, which it runs.
//
//   node web/test/bench.mjs path/to/holdfast
import { spawnSync } from 'node:child_process';
import { createServer, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { launch } from './cdp.mjs';
import { chromium, serve } from './harness.mjs';
import { screen } from './screen.mjs';

const [binary] = process.argv.slice(2);
const program = chromium();
if (!binary || !program) throw new Error('usage: node web/test/bench.mjs path/to/holdfast, with a Chromium');

const rounds = 3;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const percentile = (values, p) => [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length * p) - 1)];
const wall = () => performance.timeOrigin + performance.now();

/** Sends a message without a page. */
async function post(base, threadId, content) {
  const body = { threadId, runId: `${threadId}-run`, messages: [{ id: 'm', role: 'user', content }], state: {}, tools: [], context: [], forwardedProps: {} };
  const r = await fetch(`${base}agents/demo/runs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const said = await r.text();
  if (!said.includes('RUN_FINISHED')) throw new Error(said.slice(-500));
}

/** Forwards to a server, and knows when each word of an answer left for the page. */
async function stamping(base) {
  const left = new Map();
  const { port } = new URL(base);
  const proxy = createServer((req, res) => {
    const on = request({ host: 'localhost', port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.on('data', (chunk) => {
        res.write(chunk);
        if (!/event-stream/.test(answer.headers['content-type'])) return;
        for (const [, n] of String(chunk).matchAll(/word-(\d+)/g)) if (!left.has(Number(n))) left.set(Number(n), wall());
      });
      answer.on('end', () => res.end());
      answer.on('error', () => res.destroy());
    });
    on.on('error', () => res.destroy());
    res.on('close', () => on.destroy());
    req.pipe(on);
  });
  await new Promise((done) => { proxy.listen(0, 'localhost', done); });
  return { left, base: `http://localhost:${proxy.address().port}/`, close: () => { proxy.closeAllConnections(); proxy.close(); } };
}

/** The loaded bytes, compressed: of the first paint the files, later with their headers. */
async function load(browser, base) {
  const s = await screen(browser);
  await s.send('Network.enable');
  await s.send('Network.setCacheDisabled', { cacheDisabled: true });
  const url = new Map();
  let bytes = 0;
  s.listen((m) => {
    if (m.sessionId !== s.session) return;
    if (m.method === 'Network.responseReceived') url.set(m.params.requestId, m.params.response.url);
    if (m.method === 'Network.loadingFinished' && /\/(ui\/[^/]+\.(js|css|svg))?$/.test(url.get(m.params.requestId) ?? '')) bytes += m.params.encodedDataLength;
  });
  const idle = () => s.until('performance.getEntriesByType("resource").every((r) => performance.now() - r.responseEnd > 500)');
  await s.goto(base);
  await s.see('textbox', 'Message');
  await idle();
  const all = bytes;
  // Files after the first paint delay nobody.
  const initial = await s.run(`(() => {
    const painted = performance.getEntriesByName('first-contentful-paint')[0].startTime;
    const before = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => e.startTime < painted && (e.entryType === 'navigation' || /\\/ui\\/[^/]+\\.(js|css|svg)$/.test(e.name)));
    const sum = (of) => before.reduce((total, e) => total + e[of], 0);
    return { files: sum('encodedBodySize'), wire: sum('transferSize') };
  })()`);
  await s.run("location.hash = '#/threads/long?tab=events'");
  await s.see('log', 'Records');
  await idle();
  const inspector = bytes - all;
  await s.run("location.hash = '#/operate'");
  await s.see('heading', 'Errors');
  await idle();
  await s.close();
  return { initial: initial.files, after: all - initial.wire, inspector, operate: bytes - all - inspector };
}

/** Opens a long run in a tab of its own, as somebody does who has used Studio before and has followed a link. */
async function open(browser, base, { address, number, cursor, word }) {
  const { browserContextId } = await browser.send('Target.createBrowserContext');
  const s = await screen(browser, { browserContextId });
  await s.look({ width: 1440, height: 900 });
  await s.goto(base);
  await s.see('textbox', 'Message');
  await s.send('Page.navigate', { url: 'about:blank' });
  await s.send('Page.addScriptToEvaluateOnNewDocument', { source: `
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: 'longtask', buffered: true });
    const painted = new MessageChannel();
    painted.port1.onmessage = () => { window.there = performance.now(); };
    (function look() {
      const whole = document.querySelector('.footer-position')?.textContent === ${JSON.stringify(cursor)} && [...document.querySelectorAll('.conversation-answer .md')].at(-1)?.textContent.includes(${JSON.stringify(word)});
      const listed = ${!address.includes('tab=')} || [...document.querySelectorAll('.inspector-rows .inspector-number')].at(-1)?.textContent.split('–').at(-1) === ${JSON.stringify(String(number))};
      if (whole && listed) painted.port2.postMessage(0);
      else requestAnimationFrame(look);
    })();
  ` });
  await s.goto(base + address);
  await s.until('window.there');
  const ms = await s.run('window.there');
  const count = () => s.run("document.querySelectorAll('[data-index]').length");
  let rows = await count();
  for (const key of ['Home', 'PageDown', 'End']) {
    await s.run(`document.querySelector('.inspector-rows, .conversation-scroll').focus()`);
    await s.key(key);
    await s.run('new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); })');
    rows = Math.max(rows, await count());
  }
  await s.run('new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); })');
  const task = Math.max(0, ...await s.run('window.tasks'));
  await browser.send('Target.disposeBrowserContext', { browserContextId });
  return { ms, rows, task };
}

/** How long each word takes from the wire to the screen. */
async function stream(browser, proxy, words) {
  proxy.left.clear();
  const s = await screen(browser);
  await s.goto(proxy.base);
  await s.see('textbox', 'Message');
  // The first answer also loads what follows runs.
  await s.say('time');
  await s.until("finder.all('article', 'Assistant').length > 0 && !finder.one('button', 'Stop')");
  // Everything in the page when a frame is drawn is on the screen after it; what came into it between two frames is not.
  await s.run(`(() => {
    window.shown = new Map();
    let drawing = false;
    let changed = false;
    const painted = new MessageChannel();
    painted.port1.onmessage = () => {
      drawing = false;
      if (changed) return;
      const now = performance.timeOrigin + performance.now();
      const text = [...document.querySelectorAll('.conversation-answer .md')].at(-1)?.textContent ?? '';
      for (let n = shown.size + 1; text.includes('word-' + n); n++) shown.set(n, now);
    };
    new MutationObserver(() => { changed ||= !drawing; }).observe(document.body, { childList: true, characterData: true, subtree: true });
    (function frame() {
      drawing = true;
      changed = false;
      painted.port2.postMessage(0);
      requestAnimationFrame(frame);
    })();
  })()`);
  await s.say(`slow ${words}`);
  await s.until(`window.shown.has(${words})`, 120);
  const shown = await s.run('[...shown]');
  await s.close();
  // The last piece of a number may be on the wire before the rest: "word-1", then "2".
  return percentile(shown.filter(([n]) => proxy.left.has(n)).map(([n, at]) => at - proxy.left.get(n)), 0.95);
}

/** The long runs: one long answer, and many steps with tools. The words are so slow that each is stored as a record of its own, whatever the machine. */
const runs = {
  long: { say: 'slow 12000 words', word: 'word-12000', what: 'of one answer' },
  steps: { say: 'plan 200 steps', word: 'All 200 steps are done', what: 'of 200 steps with tools' },
};
/** Where they are opened. */
const ways = { conversation: '', grouped: '?tab=events', flat: '?tab=events&list=flat' };

const server = await serve(binary, { env: { HOLDFAST_DEMO_DELAY: '500us', HOLDFAST_DELTA_WINDOW: '0s', HOLDFAST_ARCHIVE_AFTER: '1h', HOLDFAST_MAX_ITERATIONS: '1000' } });
await server.start();
const talking = await serve(binary, { store: 'memory:', env: { HOLDFAST_DEMO_DELAY: '3ms', HOLDFAST_DELTA_WINDOW: '0s' } });
await talking.start();
const results = [];
const bar = (what, value, most, unit) => results.push({ what, value, most, unit });
const proxy = await stamping(talking.base);
try {
  const opened = [];
  for (const [thread, run] of Object.entries(runs)) {
    await post(server.base, thread, run.say);
    const { cursor } = await (await fetch(`${server.base}threads/${thread}`)).json();
    const number = Number(cursor.split('-')[0]);
    if (number < 10_000) throw new Error(`the run has ${number} records only: words were stored together, because this machine is too busy to measure on`);
    for (const [way, address] of Object.entries(ways)) opened.push({ ...run, name: `${thread} ${way}`, way, number, cursor, address: `#/threads/${thread}${address}` });
  }
  const measured = { load: [], stream: [], ...Object.fromEntries(opened.map(({ name }) => [name, []])) };
  for (let round = 0; round < rounds; round++) {
    const browser = launch(program);
    try {
      measured.load.push(await load(browser, server.operator()));
      for (const how of opened) measured[how.name].push(await open(browser, server.base, how));
      measured.stream.push({ p95: await stream(browser, proxy, 150) });
      console.error(`round ${round + 1}: ${JSON.stringify(Object.fromEntries(Object.entries(measured).map(([what, rounds]) => [what, rounds.at(-1)])))}`);
    } finally {
      await browser.close();
    }
  }
  const of = (kind, name) => median(measured[kind].map((m) => m[name]));
  bar('Initial load, compressed', of('load', 'initial') / 1000, 260, 'KB');
  bar('more after the first paint', of('load', 'after') / 1000, Infinity, 'KB');
  bar('more for the inspector', of('load', 'inspector') / 1000, Infinity, 'KB');
  bar('more for the overview with plots', of('load', 'operate') / 1000, Infinity, 'KB');
  const where = { conversation: 'in the conversation', grouped: 'in the inspector, grouped', flat: 'in the inspector, one by one' };
  for (const { name, way, number, what } of opened) bar(`${number.toLocaleString('en')} records ${what}, ${where[way]}: from the address to the last`, of(name, 'ms'), 1000, 'ms');
  const most = (what) => Math.max(...opened.map(({ name }) => of(name, what)));
  bar('rows in the page, at most', most('rows'), 200, '');
  bar('their longest task', most('task'), 200, 'ms');
  bar('A word from the wire to the screen, p95', of('stream', 'p95'), 50, 'ms');
} finally {
  proxy.close();
  await server.close();
  await talking.close();
}
const rowOf = ({ what, value, most, unit }) => `| ${what} | ${Math.round(value).toLocaleString('en')} ${unit} | ${most === Infinity ? '' : `${most.toLocaleString('en')} ${unit}`} |`.replace(/ +\|/g, ' |');
console.log('| What | Measured | Bar |\n| --- | ---: | ---: |');
for (const result of results) console.log(rowOf(result));
const suite = spawnSync(process.execPath, [fileURLToPath(new URL('./browser.mjs', import.meta.url)), binary], { encoding: 'utf8', env: { ...process.env, HOLDFAST_REQUIRE_ALL: '1' } });
const [, states = '0'] = /(\d+) states/.exec(suite.stdout) ?? [];
bar(`Violations that axe finds in ${states} states`, suite.status === 0 ? 0 : (suite.stdout.match(/^axe, /gm) ?? ['?']).length, 0, '');
console.log(rowOf(results.at(-1)));
const missed = results.filter((r) => !(r.value <= r.most));
if (suite.status !== 0) console.log(suite.stdout);
for (const { what } of missed) console.log(`missed: ${what}`);
process.exit(missed.length > 0 ? 1 : 0);
