// The page in a real browser, against a real server: every check is something that a person
// does in a chat, with reloads and kill -9 in mid-answer. Nothing is reloaded to get over a
// server that was killed.
//
//   npm test -- path/to/holdfast [redis://…]
import assert from 'node:assert/strict';
import { drive } from '../../browser/harness.mjs';

const shown = "document.getElementById('messages').innerText";
const said = "[...document.querySelectorAll('.assistant')].map((e) => e.innerText).join('')";
const idle = "document.body.dataset.running === 'false'";
const flat = (text) => text.replace(/\s+/g, ' ').trim();
const shows = (text) => `${shown}.replace(/\\s+/g, ' ').includes(${JSON.stringify(flat(text))})`;
const writing = `${said}.length > 20 && document.body.dataset.running === 'true'`;
const charge = (amount) => `use charge_card {"amount": ${amount}, "currency": "EUR"}`;

/** Chat is a new thread, shown in a tab. */
class Chat {
  constructor(all) { Object.assign(this, all); }

  async open(agent = 'demo') {
    const query = new URLSearchParams({ agent, server: this.server.api });
    await this.page.run('window.isOld = true');
    await this.page.send('Page.navigate', { url: `${this.pages}?${query}` });
    await this.page.until(`!window.isOld && location.search.includes('thread=') && ${idle}`);
    this.thread = await this.page.run("new URLSearchParams(location.search).get('thread')");
  }

  async say(words) {
    await this.page.run("document.getElementById('words').focus()");
    await this.page.type(words);
    await this.page.press('Enter');
  }

  /** Waits until the run has ended here and there, and the page shows what the server has. */
  async settled(page = this.page) {
    const thread = await this.server.ended(this.thread);
    await page.until(idle);
    const messages = await this.server.messages(this.thread);
    for (const { role, content } of messages) if (content && role !== 'reasoning') await page.until(shows(content));
    for (const role of ['user', 'assistant']) {
      assert.equal(await page.run(`document.querySelectorAll('.${role}').length`), messages.filter((m) => m.role === role).length, role);
    }
    assert.equal(await page.run("document.querySelector('.trouble')?.innerText ?? ''"), '');
    return { ...thread, messages };
  }

  async edit(nth, words) {
    await this.page.run(`document.querySelectorAll('.user')[${nth}].querySelector('button').click()`);
    await this.page.run("document.querySelector('.user textarea').select()");
    await this.page.type(words);
    await this.page.pressButton('Send again');
  }

  charges() { return [...this.server.charges().values()]; }

  /** Kills the server and starts it again, once the page has noticed; the console may say so, too. */
  async restart() {
    const note = "document.getElementById('connection').innerText";
    await this.server.kill();
    await this.page.until(`${note} === 'Reconnecting…'`);
    await this.server.start();
    await this.page.until(`${note} === ''`, 30);
    assert.deepEqual(this.complaints.filter((line) => !/net::ERR_/.test(line)), []);
    this.complaints.length = 0;
  }
}

const checks = {
  async 'a message is answered, with a card of the tool'(chat) {
    await chat.open();
    await chat.say('calculate 6 * 7');
    await chat.page.until("document.querySelector('.card.done output')?.innerText === '42'");
    assert.equal((await chat.settled()).outcome, 'success');
    await chat.page.until("document.title === 'calculate 6 * 7' && document.querySelector('nav [aria-current]').innerText === 'calculate 6 * 7'");
  },
  async 'the page runs a tool'(chat) {
    await chat.open();
    await chat.say('use paint {"color": "teal"}');
    await chat.page.until("document.documentElement.style.getPropertyValue('--accent') === 'teal'");
    await chat.page.until(shows('The page is teal now.'));
    assert.equal((await chat.settled()).outcome, 'success');
  },
  async 'an approval after a reload, with another amount'(chat) {
    await chat.open('careful');
    await chat.say(charge(50));
    await chat.page.until("document.querySelector('.question [name=amount]')");
    await chat.page.reload();
    await chat.page.until("document.querySelector('.question [name=amount]')?.value === '50'");
    const before = chat.charges().length;
    await chat.page.run("document.querySelector('.question [name=amount]').value = '20'");
    await chat.page.pressButton('Approve');
    await chat.page.until("document.querySelector('.card.done code')?.innerText.includes('20')");
    assert.equal((await chat.settled()).outcome, 'success');
    assert.deepEqual(chat.charges().slice(before), [20]);
  },
  async 'a refused call does not run'(chat) {
    await chat.open('careful');
    const before = chat.charges().length;
    await chat.say(charge(30));
    await chat.page.until("document.querySelector('.question')");
    await chat.page.pressButton('Refuse');
    await chat.page.until("!document.querySelector('.question')");
    await chat.settled();
    assert.equal(chat.charges().length, before);
  },
  async 'a question is answered, and another one is written past'(chat) {
    await chat.open();
    await chat.say('ask me to choose red, blue');
    await chat.page.until("document.querySelector('.question button')");
    await chat.page.pressButton('blue');
    await chat.page.until(shows('You answered: “blue”'));
    await chat.settled();
    await chat.say('ask me which city I live in');
    await chat.page.until("document.querySelector('.question input')");
    await chat.say('calculate 6 * 7');
    await chat.page.until(shows('calculate: 42'));
    assert.equal((await chat.settled()).outcome, 'success');
  },
  async 'Stop, and then another message'(chat) {
    await chat.open();
    await chat.say('slow 60');
    await chat.page.until(writing);
    await chat.page.pressButton('Stop');
    assert.equal((await chat.server.ended(chat.thread)).outcome, 'cancelled');
    await chat.say('slow 60');
    await chat.page.until(`${writing} && document.querySelectorAll('.user').length === 2`);
    await chat.say('calculate 6 * 7'); // without Stop
    await chat.page.until(shows('calculate: 42'));
    assert.equal((await chat.settled()).outcome, 'success');
  },
  async 'another answer charges nothing again'(chat) {
    await chat.open();
    await chat.say(charge(7));
    await chat.page.until("document.querySelector('.card.done')");
    const first = await chat.settled();
    const before = chat.charges().length;
    await chat.page.pressButton('Answer again');
    await chat.page.until(`${idle} && !document.getElementById('${first.messages.at(-1).id}')`);
    const second = await chat.settled();
    assert.notEqual(second.messages.at(-1).id, first.messages.at(-1).id);
    assert.equal(chat.charges().length, before);
  },
  async 'an edited message: what differs from a charge asks first'(chat) {
    await chat.open();
    await chat.say(charge(3));
    await chat.page.until("document.querySelector('.card.done')");
    await chat.settled();
    await chat.say('calculate 1 + 1');
    await chat.page.until(shows('calculate: 2'));
    await chat.settled();
    await chat.edit(1, 'calculate 2 + 3');
    await chat.page.until(shows('calculate: 5'));
    assert.equal((await chat.settled()).messages.filter((m) => m.role === 'user').length, 2);
    const before = chat.charges().length;
    await chat.edit(0, charge(4));
    await chat.page.until("document.querySelector('.question')?.innerText.includes('3')");
    await chat.page.pressButton('Refuse');
    await chat.page.until(`${idle} && !document.querySelector('.question')`);
    assert.equal((await chat.settled()).messages.filter((m) => m.role === 'user').length, 1);
    assert.equal(chat.charges().length, before);
  },
  async 'a reload in mid-answer, and a second tab'(chat) {
    await chat.open();
    await chat.say('slow 40');
    await chat.page.until(writing);
    await chat.page.reload();
    await chat.page.until(writing);
    const other = await chat.openTab();
    await other.goto(await chat.page.run('location.href'));
    await other.until(writing);
    for (const page of [chat.page, other]) assert.equal((await chat.settled(page)).outcome, 'success');
    await other.close();
    await chat.page.reload();
    await chat.settled();
  },
  async 'Stop after a reload'(chat) {
    await chat.open();
    await chat.say('slow 60');
    await chat.page.until(writing);
    await chat.page.reload();
    await chat.page.until(writing);
    await chat.page.pressButton('Stop');
    assert.equal((await chat.server.ended(chat.thread)).outcome, 'cancelled');
  },
  async 'kill -9 between charges: the page goes on by itself'(chat) {
    await chat.open();
    const before = chat.charges().length;
    await chat.say('charge 4');
    await chat.page.until("document.querySelectorAll('.card.done').length >= 2");
    await chat.restart();
    await chat.page.until("document.querySelectorAll('.card.done').length === 4", 30);
    const { outcome, messages } = await chat.settled();
    assert.deepEqual([outcome, messages.filter((m) => m.role === 'user').length], ['success', 1]);
    // The call that was under way may or may not have charged; it is not made again.
    assert.ok([3, 4].includes(chat.charges().length - before));
  },
  async 'kill -9 in mid-sentence'(chat) {
    await chat.open();
    await chat.say('slow 30');
    await chat.page.until(writing);
    await chat.restart();
    await chat.page.until(shows('word-30'));
    assert.equal((await chat.settled()).outcome, 'success');
  },
};

const named = Object.entries(checks).map(([name, check]) => [name, async (all) => {
  await check(new Chat(all));
  assert.deepEqual(all.complaints, []);
}]);
await drive({ home: new URL('..', import.meta.url), checks: Object.fromEntries(named) });
