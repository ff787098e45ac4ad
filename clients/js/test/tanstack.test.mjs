// TanStack AI's client, unchanged, with a real server that is killed in between. With HOLDFAST_TANSTACK=all
// on both stores, killed at PLACES places; otherwise the least of each.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ChatClient, fetchServerSentEvents } from '@tanstack/ai-client';
import { silent } from './client.mjs';
import { agents, onStores } from './stores.mjs';

const all = process.env.HOLDFAST_TANSTACK === 'all';
const kills = Number(process.env.PLACES ?? 1);
const { scenario } = onStores(agents, all, silent);

const urlOf = (server, agent) => `${server.base}/agents/${agent}/runs`;

/** A page: it names a thread, shows what the server has of it, and joins the run that is under way. */
function open(server, { agent = 'demo', threadId = randomUUID(), headers, ...more } = {}) {
  const page = { threadId, agent, errors: [], seen: 0 };
  page.chat = new ChatClient({
    threadId,
    persistence: true,
    connection: fetchServerSentEvents(urlOf(server, agent), { headers, reconnect: { maxAttempts: 400, delayMs: 10 } }),
    onError: (error) => page.errors.push(error.message),
    onStatusChange: (status) => (page.status = status),
    onRunIdChange: (run) => (page.run = run),
    onLoadingChange: (loading) => (page.loading = loading),
    onChunk: () => page.seen++,
    ...more,
  });
  page.chat.attach();
  return page;
}

const stored = async (server, { agent, threadId }, rest = '') => (await fetch(`${urlOf(server, agent)}?threadId=${threadId}${rest}`)).json();

/** What a person sees of messages. */
const shown = (messages) =>
  JSON.parse(JSON.stringify(messages)).map(({ id, role, parts }) => ({
    id,
    role,
    parts: parts.map(({ type, content, id, toolCallId, name, arguments: args, state, output, approval }) => ({ type, content, id: type === 'tool-call' ? id : undefined, toolCallId, name, args, state, output, asked: state === 'approval-requested' ? approval : undefined })),
  }));

/** Fails unless the page shows what the server has. */
async function same(server, page) {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(shown(page.chat.getMessages()), shown((await stored(server, page)).messages));
}

const partsOf = (page) => page.chat.getMessages().flatMap(({ parts }) => parts);
const textOf = (page) => partsOf(page).filter(({ type }) => type === 'text').map(({ content }) => content).join('\n');

/** Waits until something that changes is there. */
async function until(condition) {
  for (let n = 0; !condition(); n++) {
    assert.ok(n < 4000, 'it has not come');
    await new Promise((done) => setTimeout(done, 5));
  }
}

/** Waits until the page shows an answer that is complete. One that was complete when it was loaded has no status. */
const rests = (page, text) => until(() => (page.status ?? 'ready') === 'ready' && !page.loading && textOf(page).includes(text));

scenario('text, reasoning and tools, and pages of them', async (server) => {
  const page = open(server);
  for (const text of ['calculate 6 * 7', 'think about durability']) await page.chat.sendMessage(text);
  assert.ok(partsOf(page).some(({ type, output }) => type === 'tool-call' && output === 42));
  assert.ok(partsOf(page).some(({ type }) => type === 'thinking'));
  await same(server, page);
  const again = open(server, page);
  await until(() => again.chat.getMessages().length > 0);
  await same(server, again);
  await again.chat.sendMessage('hello there');
  await same(server, again);
  const whole = (await stored(server, page)).messages;
  const last = await stored(server, page, '&limit=2');
  assert.deepEqual([last.messages, last.page], [whole.slice(-2), { truncated: true, cursor: whole.at(-2).id }]);
  const first = await stored(server, page, `&limit=100&before=${last.page.cursor}`);
  assert.deepEqual([first.messages, first.page], [whole.slice(0, -2), { truncated: false }]);
});

const waiting = (page) => partsOf(page).find(({ state }) => state === 'approval-requested');
const resultsOf = (page) => partsOf(page).filter(({ type }) => type === 'tool-result').map(({ content }) => content);

for (const [name, decide] of Object.entries({
  'beside its call': (page, approved) => page.chat.addToolApprovalResponse({ id: waiting(page).approval.id, approved }),
  'as a question': (page, approved) => page.chat.getInterrupts()[0].resolveInterrupt(approved ? { approved, editedArgs: { amount: 3, currency: 'EUR' } } : { approved, reason: 'Too much.' }),
})) {
  scenario(`an approval, ${name}`, async (server) => {
    for (const reloads of [false, true]) {
      for (const approved of [true, false]) {
        const asked = open(server, { agent: 'careful' });
        await asked.chat.sendMessage('charge 1');
        await same(server, asked);
        const page = reloads ? open(server, asked) : asked;
        await until(() => page.chat.getInterrupts().length > 0);
        const [question] = page.chat.getInterrupts();
        assert.deepEqual([question.kind, question.canResolve, question.toolCallId ?? waiting(page).id], ['generic', true, waiting(page).id]);
        await same(server, page);
        await decide(page, approved);
        await rests(page, approved ? 'I made 1 charges' : 'did not');
        assert.equal(resultsOf(page).length, 1);
        assert.match(resultsOf(page)[0], approved ? /^Charged [13]\.00 EUR/ : /did not allow/);
        assert.deepEqual(page.chat.getInterrupts(), []);
        await same(server, page);
      }
    }
  }, name === 'beside its call');
}

scenario('any other question', async (server) => {
  const page = open(server);
  await page.chat.sendMessage('ask me which city I live in');
  const again = open(server, page);
  await until(() => again.chat.getInterrupts().length > 0);
  for (const { chat } of [page, again]) assert.deepEqual(chat.getInterrupts().map(({ kind, canResolve }) => [kind, canResolve]), [['generic', true]]);
  again.chat.getInterrupts()[0].resolveInterrupt({ answer: 'Vienna' });
  await rests(again, 'Vienna');
  await same(server, again);
}, false);

scenario('the shared state', async (server) => {
  const states = [];
  const onChunk = (chunk) => void (chunk.type.startsWith('STATE_') && states.push(chunk));
  const page = open(server, { onChunk });
  await page.chat.sendMessage('plan 1 step');
  assert.ok(states.length > 0);
}, false);

const pick = { name: 'pick', description: 'Lets the person pick.', inputSchema: { type: 'object' } };

scenario('a tool of the page', async (server) => {
  const page = open(server, { tools: [pick] });
  await page.chat.sendMessage('use pick {"of": ["red", "blue"]}');
  const again = open(server, { ...page, tools: [pick] });
  await until(() => partsOf(again).some(({ type }) => type === 'tool-call'));
  const { id, input } = partsOf(again).find(({ type }) => type === 'tool-call');
  assert.deepEqual(input, { of: ['red', 'blue'] });
  await again.chat.addToolResult({ toolCallId: id, tool: 'pick', output: { picked: 'red' } });
  await rests(again, 'Done');
  assert.deepEqual(shown((await stored(server, again)).messages).at(-1), shown(again.chat.getMessages()).at(-1));
}, false);

scenario('a tool that the page executes', async (server) => {
  const inputs = [];
  const execute = async (input) => {
    inputs.push(input);
    return { picked: 'red' };
  };
  const page = open(server, { tools: [{ ...pick, execute }] });
  await page.chat.sendMessage('use pick {"of": ["red", "blue"]}');
  await rests(page, 'Done');
  assert.deepEqual(inputs, [{ of: ['red', 'blue'] }]);
  assert.deepEqual((await stored(server, page)).activeRun, null);
});

scenario('Stop, and two pages', async (server) => {
  const page = open(server);
  void page.chat.sendMessage('plan 40 steps');
  await until(() => page.seen > 3);
  const other = open(server, page);
  await until(() => other.seen > 0 && other.run === page.run);
  const run = page.run;
  page.chat.stop();
  assert.equal((await stored(server, page)).activeRun.runId, run); // it goes on: stop() only stops reading
  const stopped = await fetch(`${server.base}/threads/${page.threadId}/runs/${run}/cancel`, { method: 'POST' });
  assert.ok(stopped.ok);
  await until(() => !other.loading);
  assert.equal((await stored(server, page)).activeRun, null);
  await same(server, other);
  const gone = await fetch(`${urlOf(server, 'demo')}?offset=-1&runId=${randomUUID()}`);
  assert.equal(gone.status, 404);
});

scenario('the server is killed in mid-answer', async (server) => {
  for (let n = 0; n < kills; n++) {
    const page = open(server, { agent: 'careful' });
    await page.chat.sendMessage('charge 1');
    const seen = page.seen;
    // The answer has the tool, which was approved, and words. Without its first event, nothing tells the client that
    // it can come back.
    let over = false;
    const answered = page.chat.addToolApprovalResponse({ id: waiting(page).approval.id, approved: true }).then(() => until(() => !page.loading)).then(() => (over = true));
    await until(() => page.seen > seen + n || over);
    await server.kill();
    await server.start();
    const again = open(server, page); // after a reload
    await answered;
    await rests(again, 'I made 1 charges');
    await same(server, page);
    await same(server, again);
    assert.equal(partsOf(again).filter(({ type }) => type === 'tool-result').length, 1);

    const long = open(server);
    const said = long.chat.sendMessage('plan 4 steps').then(() => (long.over = true));
    await until(() => long.seen > (200 * n) / kills || long.over); // the answer has about 200 chunks
    await server.kill();
    await server.start();
    const reloaded = open(server, long);
    await said;
    await until(() => reloaded.chat.getMessages().length > 0 && !reloaded.loading);
    await same(server, reloaded);
    assert.equal(textOf(long), textOf(reloaded));
  }
});

scenario('the server shuts down in mid-answer', async (server) => {
  const page = open(server, { headers: { 'Holdfast-Resume': '1' } });
  const said = page.chat.sendMessage('plan 4 steps');
  await until(() => page.seen > 10);
  await server.kill('SIGTERM');
  await server.start();
  await said;
  assert.deepEqual(page.errors, []);
  const reloaded = open(server, page);
  await until(() => reloaded.chat.getMessages().length > 0 && !reloaded.loading);
  await same(server, reloaded);
  assert.equal(textOf(page), textOf(reloaded));
}, false);
