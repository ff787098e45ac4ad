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

  async open(agent = 'default') {
    const query = new URLSearchParams({ v: this.generation, thread: this.thread, agent, server: `${this.server.api}/copilotkit` });
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
    await chat.page.until("document.querySelector('.state').innerText.length > 20", 30);
    await chat.ended();
  },
  async 'a reload in mid-answer shows all of it'(chat) {
    await chat.open();
    await chat.say('slow 15');
    await chat.writes();
    await chat.page.reload();
    await chat.writes();
    await chat.whole();
  },
  async 'kill -9 in mid-answer: after a reload the page has all of it'(chat, { complaints }) {
    await chat.open();
    await chat.say('slow 15');
    await chat.writes();
    await chat.server.kill();
    await chat.server.start();
    await chat.page.reload();
    await chat.writes();
    await chat.whole();
    assert.equal((await chat.messages()).length, 2);
    complaints.length = 0; // the connection was lost, and the browser says so
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
    await chat.page.pressButton('Blue');
    await chat.page.until("!document.querySelector('.question')");
    await chat.shows('blue');
    assert.equal((await chat.ended()).status, 'idle');
  },
  async 'a question is answered'(chat) {
    await chat.open();
    await chat.say('ask me to choose red, blue');
    await chat.page.until("document.querySelector('.question button')");
    await chat.page.pressButton('Blue');
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
    await chat.say('help');
    await chat.shows('demo model');
    await chat.ended();
    const parts = (await chat.messages())[0].content;
    assert.deepEqual(parts.map((part) => part.type).sort(), ['image', 'text']);
  },
  async 'a second tab shows the answer as it is written'(chat, { openTab }) {
    await chat.open();
    await chat.say('slow 15');
    await chat.writes();
    const other = await openTab();
    await other.goto(await chat.page.run('location.href'));
    await chat.writes(other);
    assert.equal((await chat.server.thread(chat.thread)).status, 'running');
    for (const page of [chat.page, other]) await chat.whole(page);
    await other.close();
  },
  async 'Stop, and then another message'(chat) {
    await chat.open();
    await chat.say('slow 60');
    await chat.writes();
    await chat.page.click('[data-testid=copilot-send-button]');
    assert.equal((await chat.ended()).outcome, 'cancelled');
    await chat.say('calculate 6 * 7');
    await chat.shows('42');
    assert.equal((await chat.ended()).outcome, 'success');
  },
};

const checks = {};
for (const generation of process.env.GENERATION ? [Number(process.env.GENERATION)] : [2, 1]) {
  for (const [name, check] of Object.entries({ ...both, ...(generation === 2 ? second : {}) })) {
    const short = name.replace(/\W+/g, '-').slice(0, 20);
    checks[`v${generation} ${name}`] = (all) => check(new Chat(all, generation, short), all);
  }
}
await drive({ home: new URL('..', import.meta.url), checks });
