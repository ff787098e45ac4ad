// The page in a real browser, against the real server: streaming, a reload and a
// kill -9 in mid-answer, questions, middleware, stop. Screenshots go to the second argument.
//
//   node web/test/browser.mjs path/to/holdfast [directory for screenshots]
//
// Without Chromium it says so and succeeds, unless HOLDFAST_REQUIRE_ALL=1.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { launch, tab } from './cdp.mjs';

const programs = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean);
const chromium = programs.find((p) => spawnSync(p, ['--version']).status === 0);
if (!chromium) {
  console.log('browser test skipped: no Chromium here (apt-get install chromium, or set CHROMIUM)');
  process.exit(process.env.HOLDFAST_REQUIRE_ALL === '1' ? 1 : 0);
}
const [binary, shots] = process.argv.slice(2);
if (!binary) throw new Error('usage: node web/test/browser.mjs path/to/holdfast [directory for screenshots]');
if (shots) mkdirSync(shots, { recursive: true });

const port = Number(process.env.PORT) || await new Promise((done) => {
  const s = createServer().listen(0, 'localhost', () => {
    const { port: free } = s.address();
    s.close(() => done(free));
  });
});
const base = `http://localhost:${port}/`;
const dir = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
let server;

async function start(env = {}, ...args) {
  server = spawn(resolve(binary), ['--addr', `localhost:${port}`, '--store', `file:${join(dir, 'data')}`, ...args], { stdio: ['ignore', 'pipe', process.env.VERBOSE ? 'inherit' : 'ignore'], cwd: dir, env: { ...process.env, ...env } });
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

const complaints = [];
const answers = "[...document.querySelectorAll('.msg.assistant .md')].map((e) => e.innerText)";
const idle = "document.getElementById('stop').hidden";
let page;

async function say(text) {
  await page.run("document.getElementById('text').focus()");
  await page.type(text);
  await page.press('Enter');
}

const press = (name) => page.run(`[...document.querySelectorAll('#ask button')].find((b) => b.textContent === ${JSON.stringify(name)}).click()`);

const watched = `agents:
  - name: demo
    model: demo
    tools: [lookup, current_time]
    middleware:
      - continuation: {maxIterations: 1}
      - toolPermission: {default: allow, rules: [{tool: lookup, then: ask, remember: [run, thread]}]}
      - circuitBreaker
`;

const shoot = (name) => shots && page.shoot(join(shots, `${name}.png`));

const parts = {
  async 'an empty page shows what to try'() {
    await page.look({});
    await page.goto(base);
    await page.until("document.querySelectorAll('#examples button').length === 3");
    await shoot('empty-light');
    await page.look({ dark: true });
    await shoot('empty-dark');
    await page.look({});
  },
  async 'an answer streams, with tools'() {
    await say('plan 3 steps');
    await page.until("document.querySelector('.msg.assistant.open')");
    await page.until("document.querySelectorAll('.call[data-state=done]').length >= 7");
    await page.until(idle);
    await page.run("document.getElementById('open-panel').click(); document.querySelector('.call').open = true");
    await page.until("document.querySelectorAll('.ev').length > 50");
    await page.run("document.querySelector('#panel > details').open = true");
    assert.match(await page.run("document.getElementById('state').textContent"), /A plan of 3 steps/);
    await shoot('inspect-light');
    await page.look({ dark: true });
    await shoot('inspect-dark');
    await page.look({});
    assert.match(await page.run("document.getElementById('status').textContent"), /Message complete/);
    assert.equal(await page.run("document.activeElement.id"), 'text', 'focus stays in the composer');
    await page.run("document.getElementById('close-panel').click()");
  },
  async 'a reload in mid-answer continues it'() {
    await page.run("document.getElementById('new').click()");
    await page.until("location.hash === '#/'");
    await say('slow 24');
    await page.until(`${answers}.join('').split(' ').length > 6`);
    const before = (await page.run(answers)).join('');
    await page.reload();
    await page.until(`${answers}.join('').split(' ').length > ${before.split(' ').length}`);
    assert.ok((await page.run(answers)).join('').startsWith(before.trim().slice(0, 40)));
    await page.until(idle, 40);
    await whole(24);
  },
  async 'a kill -9 in mid-answer loses nothing'() {
    await say('slow 24');
    await page.until(`${answers}.length > 1 && ${answers}.at(-1).split(' ').length > 6`);
    await kill();
    await page.until("document.documentElement.hasAttribute('data-offline')");
    await shoot('reconnecting');
    await start();
    await page.until("document.querySelector('.note')?.textContent.includes('took over this run')");
    await page.until(`${idle} && !document.documentElement.hasAttribute('data-offline')`, 60);
    assert.equal((await page.run(answers)).length, 2, 'nothing of the abandoned answer is left');
    await whole(24);
    await shoot('recovered');
  },
  async 'a question is answered, from a page that was reloaded'() {
    await say('ask me to choose tea, coffee, water');
    await page.until("document.querySelectorAll('#ask form').length === 1");
    await page.reload();
    await page.until("document.querySelectorAll('#ask form').length === 1");
    await shoot('question-light');
    await page.look({ dark: true });
    await shoot('question-dark');
    await page.look({ width: 360, height: 720 });
    await page.run("document.getElementById('open-side').blur()");
    assert.ok(await page.run('document.documentElement.scrollWidth <= innerWidth'), 'nothing is wider than a small screen');
    await shoot('question-narrow');
    await page.look({});
    await page.run("[...document.querySelectorAll('#ask button')].find((b) => b.textContent === 'coffee').click()");
    await page.until(`${idle} && document.getElementById('ask').hidden && ${answers}.at(-1).includes('coffee')`);
  },
  async 'a message while a question is open is not lost'() {
    await say('ask me what to do');
    await page.until("document.querySelectorAll('#ask textarea').length === 1");
    await say('hello there');
    await page.until("!document.getElementById('problem').hidden");
    assert.match(await page.run("document.getElementById('problem').textContent"), /interrupted/);
    assert.equal(await page.run("document.getElementById('text').value"), 'hello there');
    await shoot('refused');
    await page.run("document.querySelector('#problem button').click()");
    await page.until(`${idle} && document.getElementById('ask').hidden && document.getElementById('problem').hidden`);
    await page.until("[...document.querySelectorAll('.msg.user')].at(-1).textContent.includes('hello there')");
  },
  async 'forms are made from schemas, and all questions are answered together'() {
    const sent = await page.run(`(async () => {
      const { questions } = await import('/ui/ask.js');
      const box = document.createElement('section');
      box.id = 'ask';
      document.querySelector('main').append(box);
      let sent = [];
      const schema = { type: 'object', required: ['name', 'count'], properties: {
        name: { type: 'string', title: 'Your name' }, count: { type: 'integer', minimum: 1 }, size: { enum: ['S', 'M', 'L'], default: 'M' }, gift: { type: 'boolean' }, note: { type: 'object' } } };
      const interrupts = [
        { id: 'a', reason: 'input_required', message: 'Tell me', responseSchema: schema },
        { id: 'b', reason: 'tool_call', toolCallId: 'c' },
        { id: 'd', reason: 'x:y', message: 'Free words' },
      ];
      questions(box, (answers) => { sent = answers; })({ status: 'waiting', interrupts, items: [{ kind: 'call', id: 'c', name: 'pay', args: '{"amount":3}' }] });
      const press = (form, name) => [...form.querySelectorAll('button')].find((b) => b.textContent === name).click();
      const [a, b, d] = box.children;
      press(a, 'Answer');
      const early = a.isConnected && a.querySelector('textarea') !== null;
      a.querySelector('textarea').value = 'Bo';
      a.querySelector('input[type=number]').value = '2';
      press(a, 'Answer');
      const waits = sent.length === 0;
      press(b, 'Approve');
      d.querySelector('textarea').value = 'hm';
      press(d, 'Answer');
      box.remove();
      return { early, waits, sent };
    })()`);
    assert.deepEqual(sent, {
      early: true, waits: true, sent: [
        { interruptId: 'a', status: 'resolved', payload: { name: 'Bo', count: 2, size: 'M', gift: false } },
        { interruptId: 'b', status: 'resolved', payload: { approved: true } }, { interruptId: 'd', status: 'resolved', payload: 'hm' },
      ],
    });
  },
  async 'short questions have buttons, and the other fields are optional'() {
    const { seen, early, sent } = await page.run(`(async () => {
      const { questions } = await import('/ui/ask.js');
      const box = document.createElement('section');
      box.id = 'ask';
      document.querySelector('main').append(box);
      const budget = { type: 'object', required: ['allow'], properties: { allow: { type: 'boolean' }, raise: { type: 'number', exclusiveMinimum: 0 } } };
      const doubt = { type: 'object', required: ['outcome'], properties: { outcome: { enum: ['happened', 'did_not_happen'] }, result: { type: 'string' } } };
      const interrupts = [
        { id: 'a', reason: 'holdfast:budget', message: 'May it go on?', responseSchema: budget, metadata: { used: 3 } },
        { id: 'b', reason: 'holdfast:permission', responseSchema: budget, metadata: { tool: 'pay', arguments: { amount: 3 }, rule: 'p*' } },
        { id: 'c', reason: 'holdfast:in_doubt', responseSchema: doubt, metadata: { tool: 'pay', argumentsBytes: 20000 } },
        { id: 'd', reason: 'x:y', responseSchema: { type: 'boolean' } },
      ];
      let sent = [];
      questions(box, (answers) => { sent = answers; })({ status: 'waiting', interrupts, items: [] });
      const press = (form, name) => [...form.querySelectorAll('button')].find((b) => b.textContent === name).click();
      const [a, b, c, d] = box.children;
      const seen = [b, c].map((f) => [...f.querySelectorAll('p, pre')].map((e) => e.textContent).filter(Boolean).join(' '));
      const raise = a.querySelector('input');
      raise.value = '0';
      raise.dispatchEvent(new Event('input'));
      press(a, 'Allow');
      const early = a.querySelector('input') !== null;
      raise.value = '2.5';
      raise.dispatchEvent(new Event('input'));
      press(a, 'Allow');
      b.querySelector('input').value = '-1';
      press(b, 'Deny');
      press(c, 'did not happen');
      press(d, 'No');
      box.remove();
      return { seen, early, sent };
    })()`);
    assert.deepEqual(seen, ['pay by the rule p* {"amount":3}', 'pay Its arguments, 20000 bytes, are not shown here.']);
    assert.ok(early, 'a number that is not allowed is not sent');
    assert.deepEqual(sent.map((a) => a.payload), [{ raise: 2.5, allow: true }, { allow: false }, { outcome: 'did_not_happen' }, false]);
  },
  async 'Escape stops a run'() {
    await say('slow 200');
    await page.until("document.querySelector('.msg.assistant.open')");
    await page.press('Escape');
    await page.until(`${idle} && document.querySelector('#log > :last-child').textContent === 'Stopped.'`);
    await say('time');
    await page.until(`${idle} && document.querySelector('#log > :last-child').matches('.msg.assistant')`);
    assert.ok(await page.run("document.getElementById('problem').hidden"), 'a new message after Stop is not refused');
  },
  async 'a failed run says so and can be continued'() {
    await page.run("document.getElementById('new').click()");
    await page.until("location.hash === '#/'");
    await say('fail');
    await page.until("document.querySelector('.note.error code')?.textContent === 'model_failed'");
    const [shown, hint] = await page.run("((e) => [e.innerText, e.querySelector('details').textContent])(document.querySelector('.note.error'))");
    assert.ok(!shown.includes('POST') && /POST the same threadId/.test(hint), `people read ${shown}; developers ${hint}`);
    await shoot('failed');
    await page.run("document.querySelector('#resume button').click()");
    await page.until(`!document.getElementById('resume') || ${idle}`);
    await page.until("document.querySelectorAll('.note.error').length === 2");
  },
  async 'a thread has the title that a person gives it, in every browser'() {
    await page.until("document.querySelector('#threads [aria-current] .title')?.textContent === 'fail'");
    await page.until("!document.getElementById('title').disabled");
    await page.run("document.getElementById('title').click()");
    await page.type('A bad day');
    await page.press('Enter');
    await page.until("document.querySelector('#threads [aria-current] .title').textContent === 'A bad day'");
    await page.until("document.getElementById('title').textContent === 'A bad day'");
    await page.run('localStorage.clear()');
    await page.reload();
    await page.until("document.getElementById('title').textContent === 'A bad day'");
    await shoot('renamed');
  },
  async 'another tab sees what this one does'() {
    const other = await tab(browser, complaints);
    await other.goto(await page.run('location.href'));
    await other.until("document.querySelector('.note.error')");
    await say('help');
    await other.until(`${answers}.join('').includes('kill the server')`, 40);
    await other.close();
    await page.send('Page.bringToFront');
    await page.until(idle);
    await page.look({ width: 360, height: 720 });
    await shoot('text-narrow');
    await page.run("document.getElementById('open-side').click()");
    await shoot('threads-narrow');
    await page.look({ width: 320, height: 600 });
    assert.ok(await page.run('document.documentElement.scrollWidth <= innerWidth'), 'nothing is wider than 320 pixels');
    await page.look({});
    await page.run("document.querySelector('main').click()");
    await shoot('text-light');
    assert.equal(await page.run("document.querySelectorAll('#threads li').length"), 3);
  },
  async 'threads are filtered from the keyboard, and the theme is kept'() {
    await page.run('document.activeElement.blur()');
    await page.press('/');
    assert.equal(await page.run('document.activeElement.id'), 'filter');
    await page.type('slow');
    await page.until("document.querySelectorAll('#threads li').length === 1");
    await page.run("document.getElementById('theme').click()");
    const theme = await page.run('document.documentElement.dataset.theme');
    await page.reload();
    assert.equal(await page.run('document.documentElement.dataset.theme'), theme);
    await page.until("document.querySelectorAll('#threads li').length === 3");
  },
  async 'the whole run is read from the log'() {
    await page.until("document.querySelector('.msg.assistant')");
    await page.run("document.getElementById('open-panel').click(); document.getElementById('whole').click()");
    await page.until("document.querySelector('.ev .type')?.textContent === 'RUN_STARTED' && document.querySelectorAll('.ev').length > 100");
    assert.equal(await page.run("[...document.querySelectorAll('.ev .type')].filter((e) => e.textContent === 'RUN_FINISHED').length"), 1);
    await page.run("document.getElementById('family').value = 'run'; document.getElementById('family').dispatchEvent(new Event('change'))");
    assert.equal(await page.run("[...document.querySelectorAll('.ev')].filter((e) => !e.hidden).length"), 2);
  },
  async 'what middleware asks is answered, and its states are shown'() {
    await kill();
    writeFileSync(join(dir, 'watched.yaml'), watched);
    await start({}, '--config', join(dir, 'watched.yaml'));
    await page.goto(base);
    await page.run("document.getElementById('open-panel').click()");
    assert.ok(await page.run("document.getElementById('middleware').hidden"), 'there is nothing to show yet');
    await say('use lookup {"term": "fence"} and lookup {"term": "cursor"} and current_time {}');
    await page.until("document.querySelectorAll('#ask form').length === 2");
    assert.match(await page.run("document.querySelector('#ask form').innerText"), /May the agent call lookup\?[\s\S]*"term": ?"fence"/);
    await shoot('permission-light');
    await page.run("document.querySelector('#ask select').value = '1'");
    await press('Approve');
    assert.equal(await page.run("document.activeElement.textContent"), 'Approve', 'the next question has the focus');
    await page.run("[...document.querySelectorAll('#ask label')].find((e) => e.textContent.startsWith('Reason')).querySelector('textarea').value = 'ask me tomorrow'");
    await press('Reject');
    await page.until("document.querySelector('#ask h3')?.textContent.includes('Go on?')");
    await page.until("document.querySelector('.held [title=\"holdfast.continuation\"]')");
    await page.look({ width: 400, height: 820 });
    await page.run("document.getElementById('close-panel').click()");
    assert.ok(await page.run('document.documentElement.scrollWidth <= innerWidth'), 'nothing is wider than a small screen');
    await shoot('continuation-narrow');
    await page.look({});
    await press('Go on');
    await page.until(`${idle} && document.getElementById('ask').hidden`);
    // The calls run in parallel.
    const notes = await page.run("[...document.querySelectorAll('.note')].map((e) => e.textContent).sort()");
    assert.deepEqual(notes, ['Remembered for this thread: lookup is allowed.', 'The run may continue for 1 iteration.', 'lookup was not allowed, by a person.']);
    assert.match((await page.run(answers)).at(-1), /did not allow this call: ask me tomorrow/);
    await page.run("document.getElementById('open-panel').click()");
    await page.until("document.querySelector('.held:has([title=\"holdfast.continuation\"]) pre').textContent.includes('\"total\": 1')");
    assert.deepEqual(await page.run("[...document.querySelectorAll('.held summary')].map((e) => e.innerText.replace(/\\s+/g, ' '))"),
      ['circuit_breaker v1', 'continuation v1', 'tool_permission v1', 'tool_permission_run v1']);
    await page.run("document.querySelectorAll('.held').forEach((e) => { e.open = true; })");
    await shoot('middleware-light');
    await page.look({ dark: true });
    await shoot('middleware-dark');
    await page.look({ width: 400, height: 820 });
    await shoot('middleware-narrow');
    await page.look({});
  },
  async 'a state that the agent no longer has is marked'() {
    await kill();
    await start();
    await page.reload();
    await page.until(`document.querySelector('.msg.assistant') && ${idle}`);
    await page.run("document.getElementById('open-panel').click()");
    await page.until("document.querySelector('.held')");
    assert.equal(await page.run("document.querySelector('.held .mark').textContent"), '');
    await say('time');
    await page.until("[...document.querySelectorAll('.note')].some((e) => e.textContent.includes('another version of the agent’s state; now without'))");
    await page.until("document.querySelector('.held:has([title=\"holdfast.tool_permission\"]) .mark')?.textContent === 'not known here'");
    await page.until(idle);
    await shoot('not-known-here');
  },
  async 'requests to a server with keys carry one'() {
    await kill();
    const made = spawnSync(resolve(binary), ['key', '--tenant', 'acme', '--user', 'alice'], { encoding: 'utf8' });
    const [key, entry] = [/hf_\S+/, /acme\/alice:sha256:\S+/].map((r) => (made.stdout + made.stderr).match(r)?.[0]);
    await start({ HOLDFAST_API_KEYS: entry });
    await page.goto(base);
    for (const typed of ['wrong', key]) {
      await page.until("document.getElementById('key').open && !document.getElementById('keytext').value");
      await page.run("document.getElementById('keytext').focus()");
      await page.type(typed);
      await page.press('Enter');
    }
    await page.until("!document.getElementById('key').open");
    await say('time');
    await page.until("document.querySelector('.call[data-state=done]')");
    await page.until(idle);
  },
};

/** The last answer is all words of "slow n", each once, and what the server has stored. */
async function whole(n) {
  const text = (await page.run(answers)).at(-1).trim();
  assert.equal(text, Array.from({ length: n }, (_, i) => `word-${i + 1}`).join(' '));
  const stored = await page.run("fetch('threads/' + location.hash.slice(4) + '/messages').then((r) => r.json())");
  assert.equal(stored.messages.at(-1).content.trim(), text);
}

await start();
const browser = launch(chromium);
try {
  page = await tab(browser, complaints);
  for (const [name, part] of Object.entries(parts)) {
    await part();
    console.log('ok', name);
    // A killed server refuses connections; no other complaint is allowed.
    const bad = complaints.splice(0).filter((c) => !/ERR_(CONNECTION|SOCKET|INCOMPLETE|EMPTY)|status of (401|409)/.test(c));
    assert.deepEqual(bad, [], name);
  }
} catch (err) {
  if (shots) await page?.shoot(join(shots, 'failure.png')).catch(() => {});
  console.error(complaints.join('\n'));
  throw err;
} finally {
  await browser.close();
  await kill();
  rmSync(dir, { recursive: true, force: true });
}
