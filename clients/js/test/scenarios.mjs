// The actions of people, with the official client and a real server that is killed in between.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AssistantUIAgent, freePort, HoldfastAgent, HttpAgent, needsServer, old, onNth, plain, resumingFetch, same, say, Server, silent, user, version, warnings, watch } from './client.mjs';

let server;
before(async () => {
  if (!needsServer.skip) server = await new Server(await freePort()).start();
});
after(() => server?.stop());

const agent = (more = {}) => new HoldfastAgent({ url: server.url, maxDelay: 50, ...more });
const scenario = (name, run) => test(`${name} (client ${version})`, needsServer, async (t) => {
  await run(t);
  await silent();
});

/** kill -9 and restart; nothing waits for it but the agent, which must find the server again. */
async function restart() {
  await server.kill();
  await server.start();
}

scenario('a run', async () => {
  const a = agent();
  const { finished } = await say(a, 'hello there');
  assert.equal('outcome' in finished, !old);
  await say(a, 'plan 3 steps');
  await same(a, server);
});

scenario('what the server has is not sent again, in neither direction', async () => {
  const bodies = [];
  const a = agent({ fetch: (url, init) => (bodies.push(JSON.parse(init.body ?? 'null')), fetch(url, init)) });
  await say(a, 'hello there');
  await say(a, 'plan 3 steps');
  const before = a.messages.at(-1).id;
  const third = await say(a, 'hello again');
  assert.equal(bodies.length, 3);
  assert.deepEqual([bodies[2].messages[0].content, bodies[2].messages.at(-1).content, bodies[2].forwardedProps.holdfast], ['plan 3 steps', 'hello again', { since: before }]);
  assert.ok(!third.types.includes('MESSAGES_SNAPSHOT'));
  await same(a, server);
  // A server that has lost the thread is sent all of it.
  const response = await fetch(`${server.base}/threads/${a.threadId}`, { method: 'DELETE' });
  assert.ok(response.ok);
  const shown = a.messages.length;
  await say(a, 'hello once more');
  assert.deepEqual([bodies.length, bodies[4].messages.length, bodies[4].forwardedProps?.holdfast], [5, shown + 1, undefined]);
  // An imported list is put in order: results come right after their calls.
  assert.deepEqual((await server.history(a.threadId)).map(({ id }) => id).sort(), a.messages.map(({ id }) => id).sort());
});

scenario('an official client that says where it stands is told what it lacks', async () => {
  const a = agent();
  for (const words of ['hello there', 'plan 3 steps', 'hello again']) await say(a, words);
  const b = new HttpAgent({ url: server.url, threadId: a.threadId, initialMessages: structuredClone(a.messages.slice(0, 2)) });
  const { types } = await say(b, undefined, { forwardedProps: { holdfast: { since: a.messages[1].id } } });
  assert.ok(!types.includes('MESSAGES_SNAPSHOT'));
  await same(b, server);
  const again = await say(b, undefined, { forwardedProps: { holdfast: { since: a.messages.at(-1).id } } });
  assert.deepEqual(again.types, ['RUN_STARTED', 'STATE_SNAPSHOT', 'RUN_FINISHED']);
  await same(b, server);
  // Wrong about it, it is shown all.
  const wrong = await say(b, undefined, { forwardedProps: { holdfast: { since: 'nobody' } } });
  assert.ok(wrong.types.includes('MESSAGES_SNAPSHOT'));
  await same(b, server);
});

scenario('the policy chat: another answer to the same message', async () => {
  const a = agent({ holdfast: { chat: true } });
  await say(a, 'hello there');
  const [question, first] = a.messages;
  a.setMessages([question]);
  await a.runAgent();
  assert.equal(a.messages.length, 2);
  assert.notEqual(a.messages[1].id, first.id);
  await same(a, server);
});

scenario('the official client shows an edited thread in its order', async () => {
  const a = new HttpAgent({ url: server.url });
  const chat = { forwardedProps: { holdfast: { chat: true } } };
  await say(a, 'think about durability', chat);
  await say(a, 'hello there', chat);
  for (const id of [undefined, 'its own']) {
    const at = a.messages.findLastIndex(({ role }) => role === 'user');
    const edited = { ...user('hello again'), ...(id === undefined ? {} : { id: a.messages[at].id, content: 'hello once more' }) };
    a.setMessages([...a.messages.slice(0, at), edited]);
    await say(a, undefined, chat);
    await same(a, server);
  }
});

for (const [words, type, nth] of [['slow 30 words', 'TEXT_MESSAGE_CONTENT', 8], ['plan 5 steps', 'TOOL_CALL_END', 3], ['think about durability', 'REASONING_MESSAGE_CONTENT', 2]]) {
  scenario(`kill -9 and restart during ${type}`, async () => {
    const a = agent();
    let restarted;
    const states = [];
    const b = agent({ onConnection: (state) => states.push(state), threadId: a.threadId });
    const { error, types } = await say(b, words, { seen: onNth(type, nth, () => (restarted = restart())) });
    await restarted;
    assert.equal(error, undefined);
    assert.deepEqual(states, ['reconnecting', 'live']);
    assert.equal(types.filter((name) => name === 'RUN_STARTED').length, 1);
    await same(b, server);
  });
}

scenario('a bare fetch for HttpAgent', async () => {
  const a = new HttpAgent({ url: server.url, fetch: resumingFetch({ maxDelay: 50 }) });
  let restarted;
  const { error } = await say(a, 'slow 30 words', { seen: onNth('TEXT_MESSAGE_CONTENT', 8, () => (restarted = restart())) });
  await restarted;
  assert.equal(error, undefined);
  await same(a, server);
});

scenario('the server is away when the run is started', async () => {
  await server.kill();
  const a = agent();
  let away = true;
  const b = agent({
    threadId: a.threadId,
    onConnection: (state) => {
      if (state === 'reconnecting' && away) {
        away = false;
        started = server.start();
      }
    },
  });
  let started;
  const { error } = await say(b, 'hello there');
  await started;
  assert.equal(error, undefined);
  await same(b, server);
});

scenario('giving up is an error for people, and never a rejection', async () => {
  const nobody = `http://127.0.0.1:${await freePort()}/runs`;
  const a = agent({ url: nobody, patience: 100, maxDelay: 10 });
  const { error } = await say(a, 'hello there');
  assert.equal(error.code, 'connection_lost');
  assert.match(error.message, /connection to the server was lost/);
  assert.doesNotMatch(error.message, /POST|127\.0\.0\.1|fetch/);
  if (!old) assert.match(error.metadata.holdfast.hint, /127\.0\.0\.1.*could not be reached/);

  const b = agent({ patience: 100, maxDelay: 10 });
  let killed;
  const cut = await say(b, 'slow 30 words', { seen: onNth('TEXT_MESSAGE_CONTENT', 8, () => (killed = server.kill())) });
  await killed;
  assert.equal(cut.error.code, 'connection_lost');
  await server.start();
  // The run has gone on meanwhile.
  await b.connectAgent();
  await same(b, server);
});

scenario('Stop ends the run, and the next message is answered', async () => {
  const a = agent();
  await say(a, 'slow 300 words', { seen: onNth('TEXT_MESSAGE_CONTENT', 5, () => a.abortRun()) });
  const { error } = await say(a, 'hello again');
  assert.equal(error, undefined);
  const { runs } = await server.get(`/threads/${a.threadId}/runs`);
  assert.deepEqual(runs.map((run) => run.outcome), ['success', 'cancelled']);
  const history = await server.history(a.threadId);
  assert.deepEqual(a.messages.map((m) => m.id), history.map((m) => m.id));
  // Nothing after the abort was shown.
  assert.ok(history[1].content.startsWith(a.messages[1].content));
});

/** The view of a runtime that builds each message from its own events, as that of assistant-ui does. */
function builder(seen = () => {}) {
  const texts = new Map();
  const calls = new Map();
  return {
    texts,
    calls,
    onMessagesSnapshotEvent: ({ event }) => {
      for (const { id, role, content } of event.messages) if (role === 'assistant' && content === '') texts.delete(id);
    },
    onTextMessageStartEvent: ({ event }) => void texts.set(event.messageId, texts.get(event.messageId) ?? ''),
    onTextMessageContentEvent: ({ event }) => {
      texts.set(event.messageId, texts.get(event.messageId) + event.delta);
      seen();
    },
    onToolCallStartEvent: ({ event }) => void calls.set(event.toolCallId, ''),
    onToolCallArgsEvent: ({ event }) => void calls.set(event.toolCallId, calls.get(event.toolCallId) + event.delta),
  };
}

scenario('assistant-ui joins a run, which is told as a whole', async () => {
  const a = agent();
  const joining = new AssistantUIAgent({ url: server.url, threadId: a.threadId, maxDelay: 50 });
  let loading;
  const seen = onNth('TEXT_MESSAGE_CONTENT', 3, () => {
    loading = joining.history((messages) => ({ messages })).load();
    a.detach();
  });
  await say(a, 'slow 30 words', { seen });
  const { unstable_resume } = await loading;
  assert.equal(unstable_resume, true);
  const built = builder();
  await joining.runAgent({}, built);
  const [, answer] = await server.history(a.threadId);
  assert.deepEqual([...built.texts], [[answer.id, answer.content]]);
  const later = await joining.history((messages) => ({ messages })).load();
  assert.deepEqual([later.unstable_resume, later.messages.length], [false, 2]);
});

scenario('assistant-ui gets no more of what a dead process had begun', async () => {
  const a = new AssistantUIAgent({ url: server.url, maxDelay: 50 });
  a.addMessage({ id: 'u1', role: 'user', content: 'slow 30 words' });
  let [restarted, count] = [undefined, 0];
  const built = builder(() => {
    if (++count === 8) restarted = restart();
  });
  await a.runAgent({}, built);
  await restarted;
  const [, answer] = await server.history(a.threadId);
  assert.deepEqual([...built.texts].filter(([, text]) => text !== ''), [[answer.id, answer.content]]);
});

scenario('assistant-ui joins a thread that asks', async () => {
  const a = agent();
  await say(a, 'ask me to choose red, blue');
  const joining = new AssistantUIAgent({ url: server.url, threadId: a.threadId });
  await joining.history((messages) => ({ messages })).load();
  const built = builder();
  await joining.runAgent({}, built);
  const [, asks] = await server.history(a.threadId);
  assert.deepEqual([...built.texts], [[asks.id, asks.content]]);
  assert.deepEqual([...built.calls], [[asks.toolCalls[0].id, asks.toolCalls[0].function.arguments]]);
});

scenario('detaching leaves the run alone', async () => {
  const a = agent();
  await say(a, 'slow 30 words', { seen: onNth('TEXT_MESSAGE_CONTENT', 5, () => a.detach()) });
  const { error } = await watch((s) => a.connectAgent({}, s));
  assert.equal(error, undefined);
  await say(a, 'slow 300 words', { seen: onNth('TEXT_MESSAGE_CONTENT', 5, () => a.abortRun()) });
  await say(a, 'hello again');
  const { runs } = await server.get(`/threads/${a.threadId}/runs`);
  assert.deepEqual(runs.map((run) => run.outcome), ['success', 'cancelled', 'success']);
});

scenario('an abort before the answer also ends the run', async () => {
  const stop = new AbortController();
  const a = agent({
    fetch: (url, init) => {
      const answer = fetch(url, init);
      if (init.method === 'POST' && url.endsWith('/runs')) stop.abort();
      return answer;
    },
  });
  await say(a, 'slow 300 words', { abortController: stop });
  await say(a, 'hello again');
  await same(a, server);
  const { runs } = await server.get(`/threads/${a.threadId}/runs`);
  assert.deepEqual(runs.map((run) => run.outcome), ['success', 'cancelled']);
});

scenario('an agent that detaches leaves the run alone', async () => {
  const a = agent({ onAbort: 'detach' });
  await say(a, 'slow 30 words', { seen: onNth('TEXT_MESSAGE_CONTENT', 5, () => a.abortRun()) });
  const { error } = await watch((s) => a.connectAgent({}, s));
  assert.equal(error, undefined);
  await same(a, server);
  const { runs } = await server.get(`/threads/${a.threadId}/runs`);
  assert.deepEqual(runs.map((run) => run.outcome), ['success']);
});

scenario('connect during a run, through a restart', async () => {
  const a = agent();
  const page = agent({ threadId: a.threadId });
  let connected;
  const seen = onNth('TEXT_MESSAGE_CONTENT', 5, () => {
    let restarted;
    connected = watch((s) => page.connectAgent({}, s), onNth('TEXT_MESSAGE_CONTENT', 8, () => (restarted = restart()))).then(() => restarted);
  });
  await say(a, 'slow 30 words', { seen });
  await connected;
  await same(a, server);
  assert.deepEqual(plain(page.messages), plain(a.messages));
});

scenario('an answer in whose middle the run failed is still there, and is no obstacle', async () => {
  const a = agent({ holdfast: { chat: true } });
  await watch((s) => say(a, 'fail', s));
  const half = a.messages.at(-1);
  assert.match(half.content, /going to fail/);
  const page = agent({ threadId: a.threadId, holdfast: { chat: true } });
  const { types } = await watch((s) => page.connectAgent({}, s));
  assert.equal(types.at(-1), 'RUN_ERROR');
  assert.equal(page.messages.at(-1).content, half.content);
  assert.equal(page.messages.at(-1).metadata?.holdfast?.failed, true);
  await say(page, 'hello there'); // the list that it sends has the half answer
  assert.deepEqual(page.messages.map(({ role }) => role), ['user', 'assistant', 'user', 'assistant']);
  await same(page, server);
  await silent();
});

scenario('a reload shows the thread as it is', async () => {
  const a = agent();
  await say(a, 'plan 3 steps');
  const page = agent({ threadId: a.threadId });
  const { types } = await watch((s) => page.connectAgent({}, s));
  assert.deepEqual(plain(page.messages), plain(a.messages));
  assert.deepEqual(plain(page.state), plain(a.state));
  assert.equal(types.at(-1), 'RUN_FINISHED');
  await say(page, 'and now?');
  await same(page, server);
});

scenario('connecting to a thread that does not exist', async () => {
  const a = agent({ threadId: 'nobody-knows-it' });
  const { types } = await watch((s) => a.connectAgent({}, s));
  assert.deepEqual(types, ['RUN_STARTED', 'RUN_FINISHED']);
  assert.deepEqual(a.messages, []);
  await say(a, 'hello there');
  await same(a, server);
});

scenario('questions', async () => {
  const a = agent();
  const answered = ({ id }) => ({ interruptId: id, status: 'resolved', payload: { answer: 'Vienna' } });
  await say(a, 'ask me which city I live in');
  const [question, ...others] = a.pendingInterrupts;
  assert.deepEqual(others, []);

  const page = agent({ threadId: a.threadId });
  await page.connectAgent();
  assert.deepEqual(page.pendingInterrupts.map((q) => q.id), [question.id]);
  const copy = page.clone();
  assert.deepEqual(copy.pendingInterrupts, page.pendingInterrupts);
  await say(copy, undefined, { resume: copy.pendingInterrupts.map(answered) });
  assert.deepEqual(copy.pendingInterrupts, []);
  assert.match(copy.messages.at(-1).content, /Vienna/);
  await same(copy, server);
  await page.connectAgent(); // the question was answered elsewhere
  assert.deepEqual(page.pendingInterrupts, []);
  await same(page, server);

  await say(copy, 'ask me for a name');
  await say(copy, undefined, { resume: copy.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' })) });
  assert.deepEqual(copy.pendingInterrupts, []);
  await same(copy, server);
});

scenario('choices go with every run and with clones', async () => {
  const a = agent({ holdfast: { onUnfinished: 'abandon' } });
  const { error } = await say(a, 'fail');
  assert.equal(error.code, 'model_failed');
  const copy = a.clone();
  const second = await say(copy, 'hello again');
  assert.equal(second.error, undefined);
  await same(copy, server);
  // A single run's choice takes precedence.
  await say(copy, 'fail');
  copy.addMessage(user('hello?'));
  await assert.rejects(copy.runAgent({ forwardedProps: { holdfast: { onUnfinished: 'reject' } } }), (e) => e.status === 409);
  assert.match(warnings.splice(0).join(), /Agent execution failed/);
});
