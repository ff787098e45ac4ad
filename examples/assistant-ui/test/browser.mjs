// The page in a real browser, against a real server: every check is something that a person
// does in a chat, with reloads and kill -9 in mid-answer.
//
//   npm test -- path/to/holdfast [redis://…]
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { drive } from '../../browser/harness.mjs';

const text = 'document.getElementById("page").innerText';
const said = '[...document.querySelectorAll(".assistant")].map((e) => e.innerText).join("\\n")';
const idle = '[...document.querySelectorAll("button")].some((b) => b.innerText === "Send")';
const has = (button) => `[...document.querySelectorAll('button')].some((b) => b.innerText.trim() === ${JSON.stringify(button)})`;
const flat = (words) => words.replace(/\s+/g, ' ').trim();
const shows = (words) => `${text}.replace(/\\s+/g, ' ').includes(${JSON.stringify(flat(words))})`;

/** Begins a conversation on the page, and returns its thread. */
async function begin({ page, pages, server }, words, agent = 'demo') {
  await page.goto(`${pages}?agent=${agent}&server=${encodeURIComponent(server.api)}`);
  await say(page, words);
  const thread = "new URLSearchParams(location.search).get('thread')";
  await page.until(thread);
  return page.run(thread);
}

async function say(page, words) {
  await page.until(idle);
  await page.run("document.querySelector('[aria-label=Message]').focus()");
  await page.type(words);
  await page.press('Enter');
  await page.until("document.querySelector('[aria-label=Message]').value === ''");
}

/** Waits until the run has ended here and there, and the page shows what the server has. */
async function settled({ page, server }, thread) {
  const now = await server.ended(thread);
  await page.send('Page.bringToFront'); // text is drawn smoothly, only in front
  await page.until(idle);
  const messages = await server.messages(thread);
  for (const { role, content } of messages) {
    if (role !== 'tool' && role !== 'reasoning' && typeof content === 'string') await page.until(shows(content));
  }
  const users = messages.filter(({ role }) => role === 'user').length;
  assert.equal(await page.run("document.querySelectorAll('.user').length"), users);
  return { ...now, messages };
}

const edit = async (page, nth, words) => {
  await page.run(`[...document.querySelectorAll('.user')][${nth}].querySelector('button').click()`);
  await page.until("document.querySelector('.edited textarea')");
  await page.run("document.querySelector('.edited textarea').select()");
  await page.type(words);
  await page.pressButton('Send again');
};

const started = `(${said}.length > 20)`;
const lost = (complaints) => { // the browser tells of every connection that was lost
  const others = complaints.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to fetch|network error/.test(line));
  complaints.length = 0;
  complaints.push(...others);
};

const checks = {
  async 'a message is answered, with a card of the tool'(t) {
    const thread = await begin(t, 'calculate 6 * 7');
    await t.page.until("document.querySelector('.calculation')?.innerText.includes('42')");
    const { title, outcome } = await settled(t, thread);
    assert.deepEqual([title, outcome], ['calculate 6 * 7', 'success']);
    await t.page.until("document.querySelector('nav [aria-current=true]')?.innerText === 'calculate 6 * 7'");
  },
  async 'the page runs a tool'(t) {
    const thread = await begin(t, 'use paint {"color": "teal"}');
    await t.page.until("getComputedStyle(document.documentElement).getPropertyValue('--accent') === 'teal'");
    await t.page.until(shows('The page is teal now.'));
    assert.equal((await settled(t, thread)).outcome, 'success');
  },
  async 'approval: the person changes the amount'(t) {
    const before = t.server.charges().size;
    const thread = await begin(t, 'use charge_card {"amount": 50, "currency": "EUR"}', 'careful');
    await t.page.until(has('Change…'));
    await t.page.reload(); // the question is still there
    await t.page.until(has('Change…'));
    await t.page.pressButton('Change…');
    await t.page.run("document.querySelector('[aria-label=Arguments]').select()");
    await t.page.type('{"amount": 20, "currency": "EUR"}');
    await t.page.pressButton('Approve the change');
    await t.page.until("document.querySelector('[data-tool=charge_card] pre')");
    await settled(t, thread);
    assert.deepEqual([...t.server.charges().values()].slice(before), [20]);
    await t.page.until("document.querySelector('[data-tool=charge_card] code').innerText.includes('20')");
  },
  async 'approval: yes, no, and arguments that the tool does not take'(t) {
    const before = t.server.charges().size;
    const thread = await begin(t, 'use charge_card {"amount": 51, "currency": "EUR"}', 'careful');
    await t.page.until(has('Deny'));
    await t.page.pressButton('Deny');
    await t.page.until(shows('did not allow'));
    await settled(t, thread);
    assert.equal(t.server.charges().size, before);
    await say(t.page, 'use charge_card {"amount": 52, "currency": "EUR"}');
    await t.page.until(has('Approve'));
    await t.page.pressButton('Approve');
    await t.page.until("document.querySelectorAll('[data-tool=charge_card] pre').length === 2");
    await settled(t, thread);
    assert.deepEqual([...t.server.charges().values()].slice(before), [52]);
  },
  async 'Stop, then a new message'(t) {
    const thread = await begin(t, 'slow 60');
    await t.page.until(started);
    await t.page.pressButton('Stop');
    assert.equal((await t.server.ended(thread)).outcome, 'cancelled');
    await say(t.page, 'calculate 6 * 7');
    await t.page.until("document.querySelector('.calculation')?.innerText.includes('42')");
    assert.equal((await settled(t, thread)).outcome, 'success');
  },
  async 'answer again: a charge stands, and a branch can be chosen'(t) {
    const before = t.server.charges().size;
    const thread = await begin(t, 'charge 1');
    const first = await settled(t, thread);
    await t.page.until(has('Answer again'));
    await t.page.pressButton('Answer again');
    await t.page.until("document.querySelector('.branches')?.innerText.includes('2')");
    const second = await settled(t, thread);
    assert.notEqual(second.messages[1].id, first.messages[1].id);
    assert.equal(t.server.charges().size, before + 1);
    await t.page.click('[aria-label="Previous version"]');
    await say(t.page, 'calculate 6 * 7');
    const third = await settled(t, thread);
    assert.equal(third.messages[1].id, first.messages[1].id);
    assert.equal(t.server.charges().size, before + 1);
  },
  async 'edit: an equal charge is not made again, another one asks'(t) {
    const before = t.server.charges().size;
    const thread = await begin(t, 'charge 1');
    await settled(t, thread);
    await edit(t.page, 0, 'charge 1 time');
    await t.page.until(shows('charge 1 time'));
    await settled(t, thread);
    assert.equal(t.server.charges().size, before + 1);
    await edit(t.page, 0, 'use charge_card {"amount": 33, "currency": "EUR"}');
    await t.page.until(has('Approve'));
    assert.equal(t.server.charges().size, before + 1);
    await t.page.pressButton('Approve');
    await t.page.until("document.querySelector('[data-tool=charge_card] pre')");
    await settled(t, thread);
    assert.deepEqual([...t.server.charges().values()].slice(before + 1), [33]);
  },
  async 'a reload in mid-answer'(t) {
    const thread = await begin(t, 'slow 40');
    await t.page.until(started);
    await t.page.reload();
    await t.page.until(`${has('Stop')} && ${started}`);
    const { messages } = await settled(t, thread);
    assert.equal(messages.length, 2);
    assert.equal(flat(await t.page.run("document.querySelector('.assistant .said').innerText")), flat(messages[1].content));
    await say(t.page, 'calculate 6 * 7');
    await t.page.until("document.querySelector('.calculation')?.innerText.includes('42')");
    assert.equal((await settled(t, thread)).messages.length, 6);
  },
  async 'reloads between tools, and a kill -9 after one'(t) {
    const thread = await begin(t, 'plan 4 steps');
    for (const cards of [1, 3]) {
      await t.page.until(`document.querySelectorAll('.card').length >= ${cards}`);
      await t.page.reload();
    }
    await t.page.until(has('Stop'));
    await t.server.kill();
    await t.server.start();
    const { messages } = await settled(t, thread);
    assert.equal(await t.page.run("document.querySelectorAll('.card').length"), messages.flatMap((m) => m.toolCalls ?? []).length);
    const before = await t.page.run(said);
    await t.page.reload();
    await settled(t, thread);
    assert.equal(flat(await t.page.run(said)), flat(before));
    lost(t.complaints);
  },
  async 'a reload in mid-answer, then Stop'(t) {
    const thread = await begin(t, 'slow 60');
    await t.page.until(started);
    await t.page.reload();
    await t.page.until(`${has('Stop')} && ${started}`);
    await t.page.pressButton('Stop');
    assert.equal((await t.server.ended(thread)).outcome, 'cancelled');
  },
  async 'kill -9 and restart in mid-answer'(t) {
    const thread = await begin(t, 'slow 30');
    await t.page.until(started);
    await t.server.kill();
    await t.page.until("document.querySelector('.reconnecting')");
    await t.server.start();
    const { messages, outcome } = await settled(t, thread);
    assert.deepEqual([messages.length, outcome], [2, 'success']);
    assert.equal(flat(await t.page.run("[...document.querySelectorAll('.assistant .said')].map((e) => e.innerText).join(' ')")), flat(messages[1].content));
    await t.page.until("!document.querySelector('.reconnecting')");
    lost(t.complaints);
  },
  async 'kill -9 in the middle of charges'(t) {
    const before = t.server.charges().size;
    const thread = await begin(t, 'charge 4');
    await t.page.until("document.querySelectorAll('[data-tool=charge_card] pre').length >= 2");
    await t.server.kill();
    await t.server.start();
    const { messages } = await settled(t, thread);
    // A charge that was under way when the server died is in doubt: it is not started again.
    const unknown = messages.filter((m) => m.role === 'tool' && flat(m.content).startsWith('Outcome unknown')).length;
    const made = t.server.charges().size - before;
    assert.ok(unknown <= 1 && made <= 4 && made >= 4 - unknown, `${made} charges, ${unknown} in doubt`);
    await t.page.until("document.querySelectorAll('[data-tool=charge_card] pre').length === 4");
    lost(t.complaints);
  },
  async 'a second tab follows the answer'(t) {
    const thread = await begin(t, 'slow 40');
    await t.page.until(started);
    const other = await t.openTab();
    await other.goto(await t.page.run('location.href'));
    await other.until(`${has('Stop')} && ${started}`);
    await settled(t, thread);
    await settled({ ...t, page: other }, thread);
    await other.close();
  },
  async 'another thread and back in mid-answer'(t) {
    const thread = await begin(t, 'slow 41');
    await t.page.until(started);
    await t.page.pressButton('New chat');
    await t.page.until("document.querySelector('.welcome')");
    assert.equal((await t.server.thread(thread)).status, 'running');
    await t.page.pressButton('slow 41');
    await t.page.until(started);
    assert.equal((await settled(t, thread)).outcome, 'success');
  },
  async 'a question is answered'(t) {
    const thread = await begin(t, 'ask me to choose red, blue');
    await t.page.until(has('blue'));
    await t.page.reload();
    await t.page.until(has('blue'));
    await t.page.pressButton('blue');
    await t.page.until("document.querySelector('[data-tool=ask_person] pre')");
    assert.equal((await settled(t, thread)).outcome, 'success');
    assert.ok(!(await t.page.run(has('blue'))));
  },
  async 'a question is declined by another message, which stays'(t) {
    const thread = await begin(t, 'ask me to choose red, blue');
    await t.page.until(has('blue'));
    await say(t.page, 'calculate 6 * 7');
    await t.page.until("document.querySelector('.calculation')?.innerText.includes('42')");
    const { messages } = await settled(t, thread);
    assert.equal(messages.filter(({ role }) => role === 'user').length, 2);
    assert.ok(!(await t.page.run(has('blue'))));
  },
  async 'the history after a reload'(t) {
    const thread = await begin(t, 'think about durability');
    await settled(t, thread);
    await say(t.page, 'calculate 6 * 7');
    await t.page.until("document.querySelector('.calculation')?.innerText.includes('42')");
    await settled(t, thread);
    const before = await t.page.run(said);
    await t.page.reload();
    await settled(t, thread);
    assert.equal(flat(await t.page.run(said)), flat(before));
  },
};

const home = new URL('..', import.meta.url);

/** Builds the page that docs/frontends.md has for pasting, and returns its path. */
async function pasted(api) {
  const text = readFileSync(new URL('../../docs/frontends.md', home), 'utf8');
  const [, snippet] = /```tsx\n([^`]*holdfast-agent\/assistant-ui[^`]*)```/.exec(text);
  await build({
    stdin: { contents: snippet.replace('http://localhost:8080', api), loader: 'tsx', resolveDir: fileURLToPath(home) },
    outfile: fileURLToPath(new URL('dist/pasted.js', home)),
    bundle: true, format: 'esm', jsx: 'automatic', preserveSymlinks: true, define: { 'process.env.NODE_ENV': '"production"' },
  });
  writeFileSync(new URL('dist/pasted.html', home), '<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="pasted.js"></script>');
  return 'dist/pasted.html';
}

checks['the page to paste: a reload in mid-answer'] = async (t) => {
  // The snippet has one thread, which does not exist before the first message.
  await fetch(`${t.server.api}/runs`, { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, body: JSON.stringify({ threadId: 'my-first-thread', messages: [{ id: 'u0', role: 'user', content: 'hello' }] }) });
  await t.page.goto(t.pages + await pasted(t.server.api));
  await t.page.until("document.querySelector('textarea') && document.body.innerText.includes('hello')");
  await t.page.run("document.querySelector('textarea').focus()");
  await t.page.type('slow 10');
  await t.page.press('Enter');
  await t.page.until("document.body.innerText.includes('word-3')");
  await t.page.reload();
  await t.page.until("document.body.innerText.includes('word-3')");
  await t.server.ended('my-first-thread');
  await t.page.until(`document.body.innerText.replace(/\\s+/g, ' ').includes(${JSON.stringify(flat((await t.server.messages('my-first-thread')).at(-1).content))})`);
};

for (const [name, check] of Object.entries(checks)) {
  checks[name] = async (t) => {
    await check(t);
    assert.deepEqual(t.complaints, []);
  };
}

await drive({ home, checks });
