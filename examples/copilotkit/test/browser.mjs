// The page in a real browser, against a real server: every check is something that a person
// does in a chat, with reloads and kill -9 in mid-answer, in both generations of CopilotKit's
// components. GENERATION=1 or 2 checks only one.
//
//   npm test -- path/to/holdfast [redis://…]
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drive } from '../../browser/harness.mjs';

const answers = { 1: '.copilotKitAssistantMessage', 2: '[data-testid=copilot-assistant-message]' };

const buttons = { 1: '[aria-label="Regenerate response"]', 2: '[data-testid=copilot-regenerate-button]' };

/** lostOnly forgets the complaints of a browser whose server was away. */
function lostOnly(complaints) {
  const others = complaints.filter((text) => !/ERR_|Failed to load resource/.test(text));
  complaints.length = 0;
  complaints.push(...others);
}

// CopilotKit asks for the info, then connects to the thread, and ignores what is typed until
// both are done. Its first generation sends both to one route, in an envelope.
const connected = "performance.getEntriesByType('resource').filter((e) => /\\/(connect|info|copilotkit)$/.test(e.name)).length >= 2";

const shown = "document.getElementById('page').innerText";

/** flat is a text as it is compared: the page breaks lines where it likes. */
const flat = (text) => JSON.stringify(text.replace(/\s+/g, ' ').trim());

/** Chat is a thread of its own, shown in a tab. */
class Chat {
  constructor({ page, server, pages }, generation, name) {
    Object.assign(this, { page, server, pages, generation, thread: `${name}-${generation}-${Date.now()}` });
    this.said = `[...document.querySelectorAll('${answers[generation]}')].map((e) => e.innerText)`;
  }

  async open(agent = 'default', more = {}) {
    const query = new URLSearchParams({ v: this.generation, thread: this.thread, agent, server: `${this.server.api}/copilotkit`, ...more });
    await this.page.goto(`${this.pages}?${query}`);
    await this.page.until("document.querySelector('textarea')");
  }

  async say(words) {
    await this.page.until(connected);
    await this.page.until("document.querySelector('textarea') && !document.querySelector('textarea').disabled");
    await this.page.run("document.querySelector('textarea').focus()");
    await this.page.type(words);
    await this.page.until(`document.querySelector('textarea').value === ${JSON.stringify(words)}`);
    await this.page.press('Enter');
  }

  /** shows waits until one of the answers has the text. */
  shows(text, page = this.page) { return page.until(`${this.said}.some((t) => t.includes(${JSON.stringify(text)}))`, 30); }

  /** writes waits until the answer is being written. */
  writes(page = this.page) { return page.until(`${this.said}.join('').length > 20`, 30); }

  /** whole waits until the page has all of the last answer. */
  async whole(page = this.page) {
    await this.server.ended(this.thread);
    const answer = (await this.messages()).at(-1).content;
    await page.until(`${shown}.replace(/\\s+/g, ' ').includes(${flat(answer)})`);
  }

  /** settled waits until the page has seen the run's end: the last answer then has its buttons. */
  settled() { return this.page.until(`document.querySelector('${buttons[this.generation]}')`); }

  regenerate() { return this.page.click(buttons[this.generation]); }

  connected() { return this.page.until(connected); }

  async until(condition, seconds = 20) {
    for (const end = Date.now() + seconds * 1000; !(await condition());) {
      assert.ok(Date.now() < end, `never true: ${condition}`);
      await this.page.run('new Promise((done) => { setTimeout(done, 30); })');
    }
  }

  messages() { return this.server.messages(this.thread); }
  ended() { return this.server.ended(this.thread); }
}

const both = {
  async 'a message is answered'(chat) {
    await chat.open();
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
    assert.equal((await chat.ended()).title, 'calculate 6 * 7');
  },
  async 'the page runs a tool'(chat) {
    await chat.open();
    await chat.say('use paint {"color": "teal"}');
    await chat.page.until("document.body.dataset.color === 'teal'");
    await chat.shows('The page is teal now.');
    assert.equal((await chat.ended()).status, 'idle');
  },
  async 'a person answers a tool of the page'(chat) {
    await chat.open();
    await chat.say('use confirm {"what": "Really?"}');
    await chat.page.until("document.querySelector('.confirm button')");
    await chat.page.pressButton('Confirm');
    await chat.shows('The person has confirmed.');
    assert.equal((await chat.ended()).status, 'idle');
  },
  async 'the shared state arrives'(chat) {
    await chat.open();
    await chat.say('plan 2 steps');
    await chat.page.until("document.querySelector('.state')?.innerText.length > 20", 30);
    await chat.ended();
  },
  async 'a reload in mid-answer shows all of it'(chat) {
    await chat.open();
    await chat.say('slow 40');
    await chat.writes();
    await chat.page.reload();
    await chat.writes();
    await chat.whole();
  },
  async 'kill -9 in mid-answer, and the answer goes on'(chat, { complaints }) {
    await chat.open();
    await chat.say('slow 30');
    await chat.writes();
    await chat.server.kill();
    await chat.server.start();
    await chat.whole();
    assert.equal((await chat.messages()).length, 2);
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
    lostOnly(complaints);
  },
  async 'kill -9 between charges: each is made once'(chat, { complaints }) {
    const before = chat.server.charges().size;
    await chat.open();
    await chat.say('charge 3');
    await chat.until(() => chat.server.charges().size > before);
    await chat.server.kill();
    await chat.server.start();
    const end = await chat.ended();
    assert.ok(['idle', 'interrupted'].includes(end.status), end.status); // a charge in doubt asks
    assert.ok(chat.server.charges().size - before <= 3);
    lostOnly(complaints);
  },
  async 'an answer is given again: its charge is not'(chat) {
    const before = chat.server.charges().size;
    await chat.open();
    await chat.say('use charge_card {"amount": 7, "currency": "EUR"}');
    await chat.ended();
    await chat.settled();
    const { runId } = await chat.server.thread(chat.thread);
    await chat.regenerate();
    await chat.until(async () => (await chat.server.thread(chat.thread)).runId !== runId);
    const { outcome, status } = await chat.ended();
    assert.deepEqual([outcome, status], ['success', 'idle']);
    await chat.settled();
    assert.equal(chat.server.charges().size - before, 1);
    assert.equal((await chat.messages()).filter((m) => m.role === 'user').length, 1);
  },
  async 'a message after a run that was left unfinished'(chat) {
    await chat.open();
    await chat.say('slow 60');
    await chat.writes();
    await chat.page.reload();
    await chat.page.until("document.querySelector('textarea')");
    await fetch(`${chat.server.api}/copilotkit/agent/default/stop/${chat.thread}`, { method: 'POST', headers: { 'Content-Type': 'application/json' } });
    assert.notEqual((await chat.ended()).status, 'running');
    await chat.page.reload();
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
  },
};

const second = {
  async 'a question is shown, also after a reload, and answered'(chat) {
    await chat.open();
    await chat.say('ask me to choose red, blue');
    await chat.page.until("document.querySelector('.question button')");
    await chat.page.reload();
    await chat.page.until("document.querySelector('.question button')");
    assert.equal((await chat.ended()).status, 'interrupted');
    await chat.page.pressButton('blue');
    await chat.page.until("!document.querySelector('.question')");
    await chat.shows('blue');
    assert.equal((await chat.ended()).status, 'idle');
  },
  async 'a question is answered'(chat) {
    await chat.open();
    await chat.say('ask me to choose red, blue');
    await chat.page.until("document.querySelector('.question button')");
    await chat.page.pressButton('blue');
    await chat.page.until("!document.querySelector('.question')");
    await chat.shows('blue');
    assert.equal((await chat.ended()).status, 'idle');
  },
  async 'a file reaches the thread'(chat, { dir }) {
    await chat.open();
    const { page } = chat;
    await page.until(connected);
    await page.until("document.querySelector('input[type=file]')");
    const picture = join(dir, 'dot.png');
    writeFileSync(picture, Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'));
    const { result } = await page.send('Runtime.evaluate', { expression: "document.querySelector('input[type=file]')" });
    await page.send('DOM.setFileInputFiles', { files: [picture], objectId: result.objectId });
    await page.until("document.querySelector('[data-testid=copilot-attachment-queue]')");
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
    await chat.ended();
    const parts = (await chat.messages())[0].content;
    assert.deepEqual(parts.map((part) => part.type).sort(), ['image', 'text']);
  },
  async 'a second tab shows the answer as it is written'(chat, { openTab }) {
    await chat.open();
    await chat.say('slow 40');
    await chat.writes();
    const other = await openTab();
    await other.goto(await chat.page.run('location.href'));
    await chat.writes(other);
    assert.equal((await chat.server.thread(chat.thread)).status, 'running');
    for (const page of [chat.page, other]) await chat.whole(page);
    await other.close();
  },
  async 'a message is edited'(chat) {
    const before = chat.server.charges().size;
    await chat.open();
    await chat.say('use charge_card {"amount": 8, "currency": "EUR"}');
    await chat.ended();
    await chat.settled();
    await chat.page.click('[data-testid=copilot-edit-button]');
    await chat.page.until("document.querySelector('.edit input')");
    await chat.page.fill('.edit input', 'calculate 6 * 7');
    await chat.page.pressButton('Send');
    await chat.shows('42');
    await chat.ended();
    const messages = await chat.messages();
    assert.deepEqual(messages.filter((m) => m.role === 'user').map((m) => m.content), ['calculate 6 * 7']);
    await chat.page.until(`!${shown}.includes('Charge 8')`);
    assert.equal(chat.server.charges().size - before, 1);
  },
  async 'a charge is approved with another amount'(chat) {
    await chat.open('careful');
    await chat.say('use charge_card {"amount": 20, "currency": "EUR"}');
    await chat.page.until("document.querySelector('.approval [name=amount]')");
    await chat.page.reload();
    await chat.page.until("document.querySelector('.approval [name=amount]')?.value === '20'");
    await chat.page.fill('.approval [name=amount]', '12');
    const before = chat.server.charges().size;
    await chat.page.pressButton('Approve');
    await chat.page.until("!document.querySelector('.approval')");
    assert.equal((await chat.ended()).status, 'idle');
    assert.deepEqual([...chat.server.charges().values()].slice(before), [12]);
    await chat.page.until(`${shown}.includes('Charge 20 EUR') || ${shown}.includes('Charge 12 EUR')`);
    const result = (await chat.messages()).findLast((m) => m.role === 'tool').content;
    await chat.page.until(`document.querySelector('.charge b')?.innerText === ${JSON.stringify(result)}`);
  },
  async 'a charge is not approved'(chat) {
    const before = chat.server.charges().size;
    await chat.open('careful');
    await chat.say('use charge_card {"amount": 21, "currency": "EUR"}');
    await chat.page.until("document.querySelector('.approval')");
    await chat.page.pressButton('Deny');
    await chat.page.until("!document.querySelector('.approval')");
    assert.equal((await chat.ended()).status, 'idle');
    assert.equal(chat.server.charges().size, before);
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
  },
  async 'the list of threads: titles, another name, hiding, deleting'(chat, { page, server }) {
    const title = `document.querySelector('.threads [aria-current] .title')?.innerText`;
    const entry = (name) => page.click(`.threads [aria-current] ${name}`);
    await chat.open();
    await chat.say('slow 600'); // it is stopped, and on a busy machine not over before
    await page.until(`${title} === 'slow 600'`);
    await chat.writes();
    await entry('summary');
    await page.fill('.threads [aria-current] input', 'While it runs');
    await page.pressButton('Rename', '.threads [aria-current]');
    await page.until(`${title} === 'While it runs'`);
    await chat.until(async () => (await server.thread(chat.thread)).title === 'While it runs');
    assert.equal((await server.thread(chat.thread)).status, 'running');
    await page.click('[data-testid=copilot-send-button]');
    await chat.ended();
    await page.reload();
    await page.until(`${title} === 'While it runs'`);
    await entry('summary');
    await page.pressButton('Hide', '.threads [aria-current]');
    await page.until("!document.querySelector('.threads [aria-current]')");
    await chat.until(async () => (await server.thread(chat.thread)).hidden);
    await chat.open();
    await page.pressButton('New conversation');
    await chat.connected();
    const other = await page.run("new URLSearchParams(location.search).get('thread')");
    await chat.say('calculate 1 + 1');
    await page.until(`${title} === 'calculate 1 + 1'`);
    await server.ended(other);
    await entry('summary');
    await page.pressButton('Delete', '.threads [aria-current]');
    await page.until("!document.querySelector('.threads [aria-current]')");
    await chat.until(async () => (await server.thread(other)).error?.code === 'not_found');
  },
  async 'Stop, and then another message'(chat) {
    await chat.open();
    await chat.say('slow 600');
    await chat.writes();
    await chat.page.click('[data-testid=copilot-send-button]');
    assert.equal((await chat.ended()).outcome, 'cancelled');
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
    assert.equal((await chat.ended()).outcome, 'success');
  },
};

const suggested = "[...document.querySelectorAll('[data-testid=copilot-suggestion]:not(:disabled)')].map((e) => e.innerText).join()";

for (const [route, more] of Object.entries({ 'a route of their own': {}, 'the one route of all requests': { single: '1' } })) {
  second[`suggestions by ${route} leave no thread and charge nothing`] = async (chat) => {
    const charges = chat.server.charges().size;
    const threads = async () => (await chat.server.get('/threads?limit=100')).threads.map((t) => t.id);
    const before = await threads();
    await chat.open('default', { suggest: '1', ...more });
    for (const [words, answer] of [['calculate 6 * 7', '42'], ['use charge_card {"amount": 5, "currency": "EUR"}', 'Charge 5'], ['calculate 6 + 1', '7']]) {
      await chat.say(words);
      await chat.page.until(`${shown}.includes(${JSON.stringify(answer)})`);
      await chat.ended();
      await chat.page.until(`${suggested} === 'A plan of 5 steps,6 × 7'`);
    }
    assert.deepEqual((await threads()).filter((id) => !before.includes(id)), [chat.thread]);
    assert.equal(chat.server.charges().size - charges, 1);
    await chat.page.pressButton('6 × 7');
    await chat.until(async () => (await chat.messages()).filter((m) => m.content === 'calculate 6 * 7').length === 2);
    await chat.ended();
  };
}

const checks = {};
for (const generation of process.env.GENERATION ? [Number(process.env.GENERATION)] : [2, 1]) {
  for (const [name, check] of Object.entries({ ...both, ...(generation === 2 ? second : {}) })) {
    const short = name.replace(/\W+/g, '-').slice(0, 20);
    checks[`v${generation} ${name}`] = async (all) => {
      await check(new Chat(all, generation, short), all);
      assert.deepEqual(all.complaints, []);
    };
  }
}
await drive({ home: new URL('..', import.meta.url), checks });
