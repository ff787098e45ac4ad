import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { addLocal, empty, isEnd, reduce, removeLocal } from '../src/reduce.js';

const golden = (name) => readFileSync(new URL(`../../internal/agui/testdata/${name}`, import.meta.url), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
const run = (events, view = empty()) => events.reduce(reduce, view);
const began = { type: 'RUN_STARTED', threadId: 't', runId: 'r' };
const finished = (outcome) => ({ type: 'RUN_FINISHED', threadId: 't', runId: 'r', outcome });
const text = (id, ...deltas) => [{ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }, ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta }))];
const texts = (view) => view.items.filter((i) => i.kind === 'text').map((i) => i.text);
const user = (id, content) => ({ id, role: 'user', content });
/** What people can see of the rows, short. */
const rows = (view) => view.items.map((i) => [i.kind, i.text ?? i.name, i.status].filter((x) => x !== undefined).join(' '));

function deepFreeze(o) {
  if (o && typeof o === 'object' && !Object.isFrozen(o)) {
    Object.freeze(o);
    Object.values(o).forEach(deepFreeze);
  }
  return o;
}

test('every event of AG-UI 1.0 is taken, and no view is changed in place', () => {
  const events = golden('events.jsonl');
  assert.equal(new Set(events.map((e) => e.type)).size, 31);
  for (const first of [empty(), run(golden('events.jsonl'))]) {
    for (const e of events) {
      const after = reduce(deepFreeze(first), deepFreeze(e));
      assert.ok(Array.isArray(after.items), e.type);
      assert.equal(new Set(after.items.map((i) => i.key)).size, after.items.length, `${e.type}: keys are unique`);
    }
  }
});

test('every form of a message is shown', () => {
  const view = run([began, { type: 'MESSAGES_SNAPSHOT', messages: golden('messages.jsonl') }]);
  assert.deepEqual(rows(view), ['text hello', 'text look', 'call f failed', 'text ', 'reasoning hm', 'text be brief']);
  assert.deepEqual(view.items[1].parts.slice(0, 1), ['image']);
  const call = view.items[2];
  assert.deepEqual([call.args, call.result], ['{"a":', '42']);
});

test('text grows, and stays one message when it is opened again', () => {
  const view = run([began, ...text('m', 'Hel', 'lo'), ...text('m', ' you'), { type: 'TEXT_MESSAGE_END', messageId: 'm' }, finished()]);
  assert.deepEqual(texts(view), ['Hello you']);
  assert.deepEqual([view.status, view.items[0].open], ['done', false]);
});

test('what did not change keeps its identity', () => {
  const before = run([began, ...text('a', 'one'), ...text('b', 'two')]);
  const after = reduce(before, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'b', delta: '!' });
  assert.equal(after.items[0], before.items[0]);
  assert.notEqual(after.items[1], before.items[1]);
});

test('a tool call: arguments, running, result, and the time it took', () => {
  const call = { toolCallId: 'c' };
  let view = run([began, { type: 'TOOL_CALL_START', ...call, toolCallName: 'add' }, { type: 'TOOL_CALL_ARGS', ...call, delta: '{"a"' }, { type: 'TOOL_CALL_ARGS', ...call, delta: ':1}' }]);
  assert.deepEqual([view.items[0].status, view.items[0].args], ['pending', '{"a":1}']);
  view = reduce(view, { type: 'TOOL_CALL_END', ...call, timestamp: 1000 });
  assert.equal(view.items[0].status, 'running');
  view = reduce(view, { type: 'TOOL_CALL_RESULT', ...call, messageId: 'm', content: [{ type: 'text', text: '2' }, { type: 'image', source: {} }], timestamp: 1250 });
  assert.deepEqual([view.items[0].status, view.items[0].result, view.items[0].end - view.items[0].start], ['done', '2\n[image]', 250]);
  view = reduce(view, { type: 'TOOL_CALL_RESULT', ...call, messageId: 'm', content: 'no', metadata: { holdfast: { failed: true } } });
  assert.equal(view.items[0].status, 'failed');
});

test('a call without a result at the end of its run says so', () => {
  const view = run([began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, finished({ type: 'cancelled' })]);
  assert.deepEqual(rows(view), ['call f none', 'note Stopped.']);
  assert.equal(view.status, 'stopped');
});

test('an interrupt opens questions, the next run closes them', () => {
  const outcome = { type: 'interrupt', interrupts: [{ id: 'i', reason: 'input_required', toolCallId: 'c' }] };
  let view = run([began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'ask' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, finished(outcome)]);
  assert.deepEqual([view.status, view.interrupts.length, view.items[0].status], ['waiting', 1, 'waiting']);
  view = run([{ ...began, runId: 'r2' }, { type: 'TOOL_CALL_RESULT', toolCallId: 'c', messageId: 'm', content: 'yes' }], view);
  assert.deepEqual([view.status, view.interrupts, view.items[0].status], ['running', [], 'done']);
});

test('frontend calls wait', () => {
  const view = run([began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, finished({ type: 'success', pendingToolCallIds: ['c'] })]);
  assert.equal(view.items[0].status, 'waiting');
});

test('calls that are finished from outside wait, and go on with the next run', () => {
  const end = { ...finished({ type: 'success' }), metadata: { holdfast: { runId: 'r', outsideCalls: [{ toolCallId: 'c', toolName: 'approve' }] } } };
  let view = run([began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'approve' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, end]);
  assert.deepEqual([view.status, view.outside, view.interrupts, view.items[0].status], ['done', ['approve'], [], 'waiting']);
  view = run([{ ...began, runId: 'r2' }, { type: 'TOOL_CALL_RESULT', toolCallId: 'c', messageId: 'm', content: 'yes' }], view);
  assert.deepEqual([view.outside, view.items[0].status], [[], 'done']);
});

test('an error is shown with its code, once, and stream_cut is not one', () => {
  const failed = { type: 'RUN_ERROR', message: 'no', code: 'model_failed' };
  const view = run([began, ...text('m', 'half'), failed, began, failed]);
  assert.deepEqual(view.items.filter((i) => i.kind === 'note').map((i) => [i.text, i.code, i.tone]), [['no', 'model_failed', 'error']]);
  assert.deepEqual([view.status, view.items[0].open], ['failed', false]);
  const hinted = run([began, { ...failed, metadata: { holdfast: { hint: 'POST again.' } } }]);
  assert.deepEqual([hinted.items[0].text, hinted.items[0].hint], ['no', 'POST again.'], 'the hint is beside the message');
  const cut = { type: 'RUN_ERROR', message: 'later', code: 'stream_cut' };
  const running = run([began, ...text('m', 'half')]);
  assert.deepEqual(reduce(running, cut), running);
  assert.deepEqual([isEnd(cut), isEnd(failed), isEnd(finished())], [false, true, true]);
});

test('a takeover removes the unfinished answer, and a remark takes its place', () => {
  const view = run([
    began, { type: 'MESSAGES_SNAPSHOT', messages: [user('u', 'go')] }, ...text('half', 'I thi'), { type: 'TEXT_MESSAGE_END', messageId: 'half' },
    { type: 'CUSTOM', name: 'holdfast.takeover', value: { epoch: 2, iteration: 0, reason: 'owner_gone' } },
    { type: 'MESSAGES_SNAPSHOT', messages: [user('u', 'go')] }, ...text('new', 'I think'),
  ]);
  assert.deepEqual(rows(view), ['text go', 'note The server took over this run and continued it.', 'text I think']);
});

test('each notice of a middleware is a line in its place', () => {
  const warned = (timestamp) => ({ type: 'CUSTOM', name: 'holdfast.permission_denied', timestamp, value: { tool: 'pay', rule: 'pay', by: 'rule' } });
  const line = 'note pay was not allowed, by a rule.';
  const view = run([began, ...text('a', 'one'), warned(1), ...text('b', 'two'), warned(2)]);
  assert.deepEqual(rows(view), ['text one', line, 'text two', line]);
  assert.deepEqual(rows(run([warned(2)], view)), rows(view), 'a replay does not double it');
});

test('a snapshot keeps activities, and times that it does not contain', () => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const view = run([
    began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f' }, { type: 'TOOL_CALL_END', toolCallId: 'c', timestamp: 10 },
    { type: 'TOOL_CALL_RESULT', toolCallId: 'c', messageId: 'm', content: '1', timestamp: 30 },
    { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 'map', content: { x: 1 } },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'as', role: 'assistant', toolCalls: [call] }, { id: 'm', role: 'tool', toolCallId: 'c', content: '1' }] },
  ]);
  assert.deepEqual(rows(view), ['call f done', 'activity map']);
  assert.deepEqual([view.items[0].start, view.items[0].end], [10, 30]);
});

test('an empty snapshot before the full one takes nothing away', () => {
  const takeover = { type: 'CUSTOM', name: 'holdfast.takeover', value: { epoch: 2 } };
  const messages = [user('u', 'go'), { id: 'x', role: 'reasoning', content: 'so' }, { id: 'm', role: 'assistant', content: 'done' }];
  const reasoning = [{ type: 'REASONING_MESSAGE_START', messageId: 'x', role: 'reasoning', timestamp: 5 }, { type: 'REASONING_MESSAGE_END', messageId: 'x', timestamp: 905 }];
  const first = run([began, { type: 'MESSAGES_SNAPSHOT', messages: [user('u', 'go')] }, takeover, ...reasoning, ...text('m', 'done'), finished()]);
  const next = addLocal(first, user('u2', 'more'));
  const view = run([{ ...began, runId: 'r2' }, { type: 'MESSAGES_SNAPSHOT', messages: [] }, { type: 'MESSAGES_SNAPSHOT', messages: [...messages, user('u2', 'more')] }], next);
  assert.deepEqual(rows(view), ['text go', 'note The server took over this run and continued it.', 'reasoning so', 'text done', 'text more']);
  assert.equal(view.items[2].end - view.items[2].start, 900);
});

test('a repeated prelude changes nothing visible', () => {
  const prelude = [began, { type: 'MESSAGES_SNAPSHOT', messages: [user('u', 'go'), { id: 'm', role: 'assistant', content: 'Hel' }] }, { type: 'STATE_SNAPSHOT', snapshot: {} }, ...text('m')];
  const view = run([...prelude, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'lo' }]);
  assert.deepEqual(texts(view), ['go', 'Hello']);
  const again = run([...prelude.map((e) => (e.type === 'MESSAGES_SNAPSHOT' ? { ...e, messages: [user('u', 'go'), { id: 'm', role: 'assistant', content: 'Hello' }] } : e)), { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: '!' }], view);
  assert.deepEqual(texts(again), ['go', 'Hello!']);
});

test('state: snapshot, delta, and a delta that does not fit', () => {
  const view = run([began, { type: 'STATE_SNAPSHOT', snapshot: { a: [1] } }, { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/a/-', value: 2 }] }, { type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/b' }] }]);
  assert.deepEqual(view.state, { a: [1, 2] });
});

test('chunks make messages, calls and reasoning', () => {
  const view = run([
    began, { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'Hel' }, { type: 'TOOL_CALL_CHUNK', toolCallId: 'c', toolCallName: 'f', delta: '{' },
    { type: 'TEXT_MESSAGE_CHUNK', delta: 'lo' }, { type: 'TOOL_CALL_CHUNK', delta: '}' }, { type: 'REASONING_MESSAGE_CHUNK', messageId: 'x', delta: 'hm' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm2', delta: 'next' },
  ]);
  assert.deepEqual(rows(view), ['text Hello', 'call f pending', 'reasoning hm', 'text next']);
  assert.deepEqual(view.items.filter((i) => i.kind === 'text').map((i) => i.open), [false, true]);
  assert.deepEqual(rows(run([finished()], view)), ['text Hello', 'call f none', 'reasoning hm', 'text next']);
});

test('reasoning has a duration; if the provider hides it, the page says so', () => {
  const m = { messageId: 'x' };
  const view = run([
    began, { type: 'REASONING_START', ...m }, { type: 'REASONING_MESSAGE_START', ...m, role: 'reasoning', timestamp: 5 },
    { type: 'REASONING_MESSAGE_CONTENT', ...m, delta: 'so' }, { type: 'REASONING_MESSAGE_END', ...m, timestamp: 905 }, { type: 'REASONING_END', ...m },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'y', encryptedValue: 'e' },
  ]);
  assert.equal(view.items[0].end - view.items[0].start, 900);
  assert.deepEqual([view.items[1].kind, view.items[1].hidden], ['reasoning', true]);
});

test('steps and subagents are rows', () => {
  const view = run([
    began, { type: 'STEP_STARTED', stepName: 's' }, { type: 'STEP_FINISHED', stepName: 's' }, { type: 'SUBAGENT_STARTED', subagentRunId: 'g', name: 'n', description: 'd' },
    { type: 'SUBAGENT_ERROR', subagentRunId: 'g', message: 'broke' },
  ]);
  assert.deepEqual(rows(view), ['step s', 'agent broke failed']);
});

test('a watcher under another id shows the real run', () => {
  assert.equal(run([{ ...began, runId: 'mine', metadata: { holdfast: { runId: 'real' } } }]).runId, 'real');
});

test('the person’s message appears at once, is not doubled, and can be taken back', () => {
  const view = addLocal(empty(), user('u', 'hi'));
  assert.deepEqual(texts(view), ['hi']);
  assert.deepEqual(texts(run([{ ...began, input: { messages: [user('u', 'hi')] } }, { type: 'MESSAGES_SNAPSHOT', messages: [user('u', 'hi')] }], view)), ['hi']);
  assert.deepEqual(removeLocal(view, 'u').items, []);
});

test('unknown events change nothing', () => {
  const view = run([began]);
  for (const e of [{ type: 'META_EVENT' }, { type: 'constructor' }, { type: 'CUSTOM', name: 'other', value: null }, { type: 'RAW', event: null }]) assert.deepEqual(reduce(view, e), view);
});

test('an image is an activity of the answer, and goes with it', () => {
  const image = (id, content) => ({ id, role: 'activity', activityType: 'holdfast.image', content });
  const shown = { mimeType: 'image/png', url: 'data:image/png;base64,AAAA' };
  const other = { type: 'ACTIVITY_SNAPSHOT', messageId: 'p', activityType: 'plan', content: { steps: 1 } };
  let view = run([began, ...text('a', 'Here'), { type: 'TEXT_MESSAGE_END', messageId: 'a' }, other, { type: 'ACTIVITY_SNAPSHOT', messageId: 'i', activityType: 'holdfast.image', content: shown }, finished()]);
  assert.deepEqual(rows(view), ['text Here', 'activity plan', 'activity holdfast.image']);
  view = reduce(view, { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'a', role: 'assistant', content: 'Here' }, image('i', { mimeType: 'image/png', leftOut: 4 })] });
  assert.deepEqual(view.items.find((i) => i.id === 'i').content, shown, 'what was left out for its size stays');
  view = reduce(view, { type: 'MESSAGES_SNAPSHOT', messages: [user('u', 'again')] });
  assert.deepEqual(rows(view), ['activity plan', 'text again']);
});
