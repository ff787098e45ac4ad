// A conversation: streaming, a reload and a kill -9 in mid-answer, questions, versions.
import assert from 'node:assert/strict';

/** The words of "slow n", each once. */
export const words = (n) => Array.from({ length: n }, (_, i) => `word-${i + 1}`).join(' ');

/** The text of the answer, without what marks a seam in it. */
export const answer = (at = -1) => `(() => {
  const e = finder.all('article', 'Assistant').at(${at})?.cloneNode(true);
  e?.querySelectorAll('button').forEach((b) => b.remove());
  return (e?.querySelector('.md') ?? e)?.textContent.replace(/\\s+/g, ' ').trim() ?? '';
})()`;

/** The last answer is all words of "slow n", each once, and what the server has stored. */
export async function whole(s, n) {
  assert.equal(await s.run(answer()), words(n));
  const { messages } = await s.get(`threads/${encodeURIComponent(await s.thread())}/messages`);
  assert.equal(messages.at(-1).content.trim(), words(n));
}

export const some = (n, at = -1) => `${answer(at)}.split(' ').length > ${n}`;

export default {
  async 'an empty page shows what to try, in both themes'({ s, server, shot }) {
    await s.goto(server.base);
    await s.see('heading', 'What should it hold on to?');
    await s.see('button', /^slow 40/);
    await s.axe('a new thread');
    await shot('empty-light');
    await s.look({ dark: true });
    await s.axe('a new thread, dark');
    await shot('empty-dark');
    await s.look();
  },
  async 'an answer streams, with reasoning and tools'({ s }) {
    await s.say('think why is the sky blue');
    await s.idle();
    await s.see('button', /^Thought for/);
    await s.say('plan 3 steps');
    await s.busy();
    await s.idle();
    assert.equal(await s.run("document.querySelectorAll('details[data-status=done]').length"), 7);
    await s.reads(/Message complete/);
    assert.equal(await s.focused(), 'Message', 'the focus stays in the composer');
    await s.click('button', /^lookup/);
    for (const part of ['Arguments', 'Result']) await s.see('region', part);
    await s.reads(/Effect/);
    await s.axe('a tool card that is open');
    await s.look({ dark: true });
    await s.axe('a tool card that is open, dark');
    await s.look();
  },
  async 'a draft outlives a reload'({ s }) {
    await s.fill('textbox', 'Message', 'not sent yet');
    await s.reload();
    await s.until("finder.one('textbox', 'Message')?.value === 'not sent yet'");
    await s.fill('textbox', 'Message', '');
  },
  async 'a reload in mid-answer continues it'({ s }) {
    await s.click('link', 'New thread');
    await s.until("location.hash === '#/'");
    await s.say('slow 100');
    await s.until(some(6));
    const before = await s.run(answer());
    await s.reload();
    await s.until(some(before.split(' ').length));
    assert.ok((await s.run(answer())).startsWith(before.slice(0, 40)));
    await s.idle();
    await whole(s, 100);
  },
  async 'a kill -9 in mid-answer loses nothing, and leaves a seam'({ s, server, shot }) {
    await s.say('slow 150');
    await s.until(`finder.all('article', 'Assistant').length > 1 && ${some(10)}`);
    await server.kill();
    await s.reads(/Reconnecting…/);
    await shot('reconnecting');
    await s.axe('reconnecting');
    await server.start();
    await s.see('button', /died here.* went on/);
    await s.idle();
    await s.reads(/Connected/);
    await whole(s, 150);
    assert.equal(await s.count('article', 'Assistant'), 2, 'nothing of the abandoned answer is left');
    await shot('seam');
    await s.click('button', /died here.* went on/);
    await s.see('dialog', /died here.* went on/);
    await s.axe('what is behind a seam');
    await s.key('Escape');
    await s.reload();
    await s.see('button', /died here.* went on/);
    await whole(s, 150);
  },
  async 'a question is answered from a second tab'({ s, open, shot }) {
    await s.say('ask me to choose tea, coffee, water');
    await s.see('button', 'coffee');
    await s.axe('a question');
    await s.reload();
    await s.see('button', 'coffee');
    await shot('question-light');
    await s.look({ dark: true });
    await s.axe('a question, dark');
    await s.look({ width: 320, height: 640 });
    await s.narrow('a question');
    await s.axe('a question, narrow');
    await s.look();
    const other = await open();
    await other.goto(await s.run('location.origin + location.pathname + "#/questions"'));
    await other.see('button', 'coffee');
    await other.axe('the questions of all threads');
    await other.click('button', 'coffee');
    await s.gone('button', 'coffee');
    await s.idle();
    await s.reads(/coffee/, 'article', 'Assistant');
    await other.until("finder.all('button', 'coffee').length === 0");
    await other.axe('no questions');
    await other.shut();
  },
  async 'a message while a question is open declines it'({ s }) {
    await s.say('ask me what to do');
    await s.see('button', 'Answer');
    await s.say('hello there');
    await s.gone('button', 'Answer');
    await s.idle();
    await s.reads(/hello there/, 'article', 'You');
  },
  async 'what is edited or answered again has versions'({ s }) {
    await s.click('link', 'New thread');
    await s.until("location.hash === '#/'");
    await s.say('calculate 1 + 1');
    await s.idle();
    await s.reads(/\b2\b/, 'article', 'Assistant');
    await s.click('button', 'Edit');
    await s.axe('a message that is edited');
    await s.fill('textbox', 'Your message', 'calculate 20 + 1');
    await s.key('Enter');
    await s.see('group', 'Versions');
    await s.idle();
    await s.reads(/21/, 'article', 'Assistant');
    await s.reads(/2 \/ 2/, 'group', 'Versions');
    await s.axe('versions');
    await s.click('button', 'Earlier version');
    await s.reads(/1 \/ 2/, 'group', 'Versions');
    await s.reads(/1 \+ 1/, 'article', 'You');
    await s.click('button', 'Later version');
    await s.reads(/20 \+ 1/, 'article', 'You');
    await s.until("finder.all('article', 'Assistant').length > 0");
    await s.click('button', 'Answer again', { at: -1 });
    await s.until("finder.all('group', 'Versions').length >= 2");
    await s.idle();
    await s.reload();
    await s.reads(/2 \/ 2/, 'group', 'Versions');
    await s.reads(/20 \+ 1/, 'article', 'You');
  },
  async 'Escape stops a run, and a run that is stopped is in nobody’s way'({ s }) {
    const had = await s.count('article', 'Assistant');
    await s.say('slow 2000');
    await s.until(`finder.all('article', 'Assistant').length > ${had} && ${some(4)}`);
    await s.fill('textbox', 'Message', 'wait for me');
    await s.key('Enter');
    await s.reads(/Stop it first, or wait/);
    await s.key('Escape');
    await s.idle();
    await s.reads(/Stopped/);
    assert.equal(await s.run("finder.one('textbox', 'Message').value"), 'wait for me');
    await s.say('time');
    await s.idle();
    assert.doesNotMatch(await s.text(), /This was not sent/);
  },
  async 'a failed run says so and can be continued'({ s, shot }) {
    await s.click('link', 'New thread');
    await s.until("location.hash === '#/'");
    await s.say('fail');
    await s.see('button', 'Continue');
    await s.reads(/model_failed/);
    assert.doesNotMatch(await s.text('log', 'Conversation'), /POST/, 'people are told what to do, not programs');
    await s.axe('a run that has failed');
    await s.look({ dark: true });
    await s.axe('a run that has failed, dark');
    await s.look();
    await shot('failed');
    const before = await s.text('button', 'Continue') && await s.run("document.querySelector('.footer-position').textContent");
    await s.click('button', 'Continue');
    await s.until(`document.querySelector('.footer-position').textContent !== ${JSON.stringify(before)}`);
    await s.see('button', 'Continue');
  },
  async 'a thread is renamed, hidden and deleted, and each is taken back'({ s }) {
    const id = await s.thread();
    await s.click('button', 'fail');
    await s.fill('textbox', 'Title', 'A bad day');
    await s.key('Enter');
    await s.see('button', 'A bad day');
    await s.run('localStorage.clear()');
    await s.reload();
    await s.see('button', 'A bad day');
    await s.see('link', /^A bad day/);
    await s.click('button', 'More about A bad day');
    await s.see('menuitem', 'Hide');
    await s.axe('the menu of a thread');
    await s.click('menuitem', 'Hide');
    await s.gone('link', /^A bad day/);
    await s.click('button', 'Undo');
    await s.see('link', /^A bad day/);
    await s.click('button', 'More about A bad day');
    await s.click('menuitem', 'Delete');
    await s.gone('link', /^A bad day/);
    await s.axe('a thread that was deleted');
    await s.click('button', 'Undo', { at: -1 });
    await s.see('link', /^A bad day/);
    assert.equal((await s.get(`threads/${encodeURIComponent(id)}`)).title, 'A bad day');
  },
  async 'threads are searched from the keyboard, and themes are kept'({ s }) {
    await s.run('document.activeElement.blur()');
    await s.key('/');
    await s.until("finder.name(document.activeElement) === 'Search threads'");
    await s.type('bad');
    await s.until("document.querySelectorAll('.threads-link').length === 1");
    await s.key('Enter');
    await s.see('button', 'A bad day');
    await s.click('button', 'Clear the search');
    await s.click('button', 'View');
    await s.click('menuitemradio', 'Dark');
    await s.key('Escape');
    const dark = "document.documentElement.dataset.theme === 'dark' && getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'";
    await s.until(dark);
    await s.reload();
    assert.ok(await s.run(dark), 'nothing flashes');
    await s.click('button', 'View');
    await s.click('menuitemradio', 'As the system');
    await s.key('Escape');
  },
  async 'files are attached, and nothing is sent without them'({ s, server }) {
    await s.click('link', 'New thread');
    await s.until("location.hash === '#/'");
    await s.see('button', 'Attach files');
    const { root } = await s.send('DOM.getDocument');
    const { nodeId } = await s.send('DOM.querySelector', { nodeId: root.nodeId, selector: 'input[type=file]' });
    await s.send('DOM.setFileInputFiles', { nodeId, files: [server.file('note.txt', 'Nobody reads this.')] });
    await s.see('list', 'Attachments');
    await s.axe('an attachment');
    await s.say('help');
    await s.idle();
    await s.reads(/note\.txt/, 'article', 'You');
    const { messages } = await s.get(`threads/${encodeURIComponent(await s.thread())}/messages`);
    assert.ok(Array.isArray(messages[0].content) && messages[0].content.length === 2, JSON.stringify(messages[0]));
  },
  async 'every width from 320 pixels has everything'({ s, shot }) {
    await s.look({ width: 320, height: 640 });
    await s.see('button', 'Show threads');
    await s.narrow('a conversation');
    await s.axe('a conversation, narrow');
    await shot('narrow');
    await s.click('button', 'Show threads');
    await s.see('dialog', 'Threads');
    await s.narrow('threads');
    await s.axe('threads, narrow');
    await s.key('Escape');
    await s.gone('dialog', 'Threads');
    await s.click('button', 'Show the inspector');
    await s.see('dialog', 'Inspector');
    await s.narrow('the inspector');
    await s.axe('the inspector, narrow');
    await s.key('Escape');
    await s.gone('dialog', 'Inspector');
    await s.look({ width: 2400, height: 1300 });
    await s.narrow('a wide screen');
    await s.look();
  },
};
