// The page in a real browser, against a real server: every check is something that a person
// does in a chat, with reloads and kill -9 in mid-answer.
//
//   npm test -- path/to/holdfast [redis://…]
//
// Without Chromium it says so and succeeds, unless HOLDFAST_REQUIRE_ALL=1.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, tab } from '../../../web/test/cdp.mjs';

const programs = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean);
const chromium = programs.find((p) => spawnSync(p, ['--version']).status === 0);
if (!chromium) {
  console.log('browser test skipped: no Chromium here (apt-get install chromium, or set CHROMIUM)');
  process.exit(process.env.HOLDFAST_REQUIRE_ALL === '1' ? 1 : 0);
}
const [binary, store] = process.argv.slice(2);
if (!binary) throw new Error('usage: npm test -- path/to/holdfast [store]');

const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, 'localhost', () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});
const port = await freePort();
const api = `http://localhost:${port}`;
const dir = mkdtempSync(join(tmpdir(), 'holdfast-copilotkit-'));
const home = fileURLToPath(new URL('..', import.meta.url));
let server;

async function start() {
  server = spawn(resolve(binary), ['--addr', `localhost:${port}`, '--store', store ?? `file:${join(dir, 'data')}`], { stdio: ['ignore', 'pipe', process.env.VERBOSE ? 'inherit' : 'ignore'], cwd: dir });
  await new Promise((done, fail) => {
    server.stdout.on('data', (text) => String(text).includes('listening') && done());
    server.on('exit', (code) => fail(new Error(`the server ended with ${code}`)));
  });
}

function kill() {
  const gone = new Promise((done) => { server.removeAllListeners('exit').on('exit', done); });
  server.kill('SIGKILL');
  return gone;
}

const files = spawn(process.execPath, [join(home, 'serve.mjs'), '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
const pages = await new Promise((done) => files.stdout.once('data', (line) => done(String(line).trim())));

const complaints = [];
let page;
let thread;
let generation;

/** open shows a thread of its own. */
async function open(name) {
  thread = `${name}-${Date.now()}`;
  await page.goto(`${pages}?v=${generation}&thread=${thread}&server=${encodeURIComponent(`${api}/copilotkit`)}`);
  await page.until("document.querySelector('textarea')");
}

const text = "document.getElementById('page').innerText";
const answers = { 1: '.copilotKitAssistantMessage', 2: '[data-testid=copilot-assistant-message]' };
const said = () => `[...document.querySelectorAll('${answers[generation]}')].map((e) => e.innerText)`;

// CopilotKit asks for the info, then connects to the thread, and ignores what is typed until
// both are done. Its first generation sends both to one route, in an envelope.
const connected = "performance.getEntriesByType('resource').filter((e) => /\\/(connect|info|copilotkit)$/.test(e.name)).length >= 2";

async function say(words) {
  await page.until(connected);
  await page.until("document.querySelector('textarea') && !document.querySelector('textarea').disabled");
  await page.run("document.querySelector('textarea').focus()");
  await page.type(words);
  await page.until(`document.querySelector('textarea').value === ${JSON.stringify(words)}`);
  await page.press('Enter');
}

const press = (name) => page.run(`[...document.querySelectorAll('button')].find((b) => b.innerText.trim() === ${JSON.stringify(name)}).click()`);
const info = async () => (await fetch(`${api}/threads/${thread}`)).json();
const messages = async () => (await (await fetch(`${api}/threads/${thread}/messages`)).json()).messages;

/** ended waits until the thread's run has ended, and returns the thread. */
async function ended() {
  for (;;) {
    const now = await info();
    if (now.status && now.status !== 'running') return now;
    await page.until('true');
  }
}

const checks = {
  async 'a message is answered'() {
    await open('hello');
    await say('calculate 6 * 7');
    await page.until(`${text}.includes('42')`);
    assert.equal((await ended()).title, 'calculate 6 * 7');
  },
  async 'the page runs a tool'() {
    await open('paint');
    await say('use paint {"color": "teal"}');
    await page.until("document.body.dataset.color === 'teal'");
    await page.until(`${said()}.some((t) => t.includes('The page is teal now.'))`);
    assert.equal((await ended()).status, 'idle');
  },
  async 'a person answers a tool of the page'() {
    await open('confirm');
    await say('use confirm {"what": "Really?"}');
    await page.until("document.querySelector('.confirm button')");
    await press('Confirm');
    await page.until(`${said()}.some((t) => t.includes('The person has confirmed.'))`);
    assert.equal((await ended()).status, 'idle');
  },
  async 'the shared state arrives'() {
    await open('state');
    await say('plan 2 steps');
    await page.until("document.querySelector('.state').innerText.length > 20", 30);
    await ended();
  },
  async 'a reload in mid-answer shows all of it'() {
    await open('reload');
    await say('slow 30');
    await page.until(`${said()}.join('').length > 20`);
    await page.reload();
    await page.until(`${said()}.join('').length > 20`);
    await ended();
    const answer = (await messages()).at(-1).content;
    await page.until(`${text}.replace(/\\s+/g, ' ').includes(${JSON.stringify(answer.replace(/\s+/g, ' ').trim())})`);
  },
  async 'kill -9 in mid-answer: after a reload the page has all of it'() {
    await open('kill');
    await say('slow 30');
    await page.until(`${said()}.join('').length > 20`);
    await kill();
    await start();
    await page.reload();
    await page.until(`${said()}.join('').length > 20`, 30);
    await ended();
    const answer = (await messages()).at(-1).content;
    await page.until(`${text}.replace(/\\s+/g, ' ').includes(${JSON.stringify(answer.replace(/\s+/g, ' ').trim())})`);
    assert.equal((await messages()).length, 2);
    complaints.length = 0; // the connection was lost, and the browser says so
  },
  async 'a message after a run that was left unfinished'() {
    await open('busy');
    await say('slow 60');
    await page.until(`${said()}.join('').length > 20`);
    await page.reload();
    await page.until("document.querySelector('textarea')");
    await fetch(`${api}/copilotkit/agent/default/stop/${thread}`, { method: 'POST', headers: { 'Content-Type': 'application/json' } });
    assert.notEqual((await ended()).status, 'running');
    await page.reload();
    await say('calculate 6 * 7');
    await page.until(`${said()}.some((t) => t.includes('42'))`);
  },
};

const questions = {
  async 'a question is shown, also after a reload'() {
    await open('question');
    await say('ask me to choose red, blue');
    await page.until("document.querySelector('.question button')");
    await page.reload();
    await page.until("document.querySelector('.question button')");
    assert.equal((await info()).status, 'interrupted');
  },
  async 'a question is answered'() {
    await open('answered');
    await say('ask me to choose red, blue');
    await page.until("document.querySelector('.question button')");
    await press('Blue');
    await page.until(`!document.querySelector('.question') && ${said()}.some((t) => t.includes('blue'))`);
    assert.equal((await ended()).status, 'idle');
  },
  async 'a question is answered after a reload'() {
    await open('answered-later');
    await say('ask me to choose red, blue');
    await page.until("document.querySelector('.question button')");
    await page.reload();
    await page.until("document.querySelector('.question button')");
    await press('Blue');
    await page.until(`!document.querySelector('.question') && ${said()}.some((t) => t.includes('blue'))`);
    assert.equal((await ended()).status, 'idle');
  },
  async 'a file reaches the thread'() {
    await open('file');
    await page.until(connected);
    await page.until("document.querySelector('input[type=file]')");
    const picture = join(dir, 'dot.png');
    writeFileSync(picture, Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'));
    const { result } = await page.send('Runtime.evaluate', { expression: "document.querySelector('input[type=file]')" });
    await page.send('DOM.setFileInputFiles', { files: [picture], objectId: result.objectId });
    await page.until("document.querySelector('[data-testid=copilot-attachment-queue]')");
    await say('help');
    await page.until(`${said()}.some((t) => t.includes('demo model'))`);
    await ended();
    const parts = (await messages())[0].content;
    assert.deepEqual(parts.map((part) => part.type).sort(), ['image', 'text']);
  },
  async 'a second tab shows the answer as it is written'() {
    await open('tabs');
    await say('slow 30');
    await page.until(`${said()}.join('').length > 20`);
    const other = await tab(browser, []);
    await other.goto(await page.run('location.href'));
    await other.until(`${said()}.join('').length > 20`);
    await ended();
    const answer = JSON.stringify((await messages()).at(-1).content.replace(/\s+/g, ' ').trim());
    for (const each of [page, other]) await each.until(`${text}.replace(/\\s+/g, ' ').includes(${answer})`);
    await other.close();
  },
  async 'Stop, and then another message'() {
    await open('stopped');
    await say('slow 60');
    await page.until(`${said()}.join('').length > 20`);
    await page.run("document.querySelector('[data-testid=copilot-send-button]').click()");
    assert.equal((await ended()).outcome, 'cancelled');
    await say('calculate 6 * 7');
    await page.until(`${said()}.some((t) => t.includes('42'))`);
    assert.equal((await ended()).outcome, 'success');
  },
};

let failed = 0;
const browser = launch(chromium);
try {
  await start();
  page = await tab(browser, complaints);
  // The page has more files than a browser notes by default.
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: 'performance.setResourceTimingBufferSize(5000)' });
  const until = page.until;
  page.until = (expression, seconds) => until(`Boolean(${expression})`, seconds);
  for (generation of process.env.GENERATION ? [Number(process.env.GENERATION)] : [2, 1]) {
    for (const [name, check] of Object.entries({ ...checks, ...(generation === 2 ? questions : {}) })) {
      if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
      try {
        await check();
        console.log(`ok   v${generation} ${name}`);
      } catch (err) {
        failed++;
        console.log(`FAIL v${generation} ${name}\n${err.stack}\n${complaints.slice(-3).join('\n')}`);
      }
      complaints.length = 0;
    }
  }
} finally {
  await browser.close();
  await kill().catch(() => {});
  files.kill();
  rmSync(dir, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
