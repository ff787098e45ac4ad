// One legal sequence out of several streams.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Transcript } from '../dist/transcript.js';

const types = (events) => events.map((event) => event.type);
const start = (more = {}) => ({ type: 'RUN_STARTED', threadId: 't', runId: 'r', ...more });

test('a second start closes what is open, the newest first', () => {
  const shown = new Transcript('r');
  const open = [
    { type: 'STEP_STARTED', stepName: 's' }, { type: 'STEP_STARTED', stepName: 's', subagentRunId: 'sub' },
    { type: 'REASONING_START', messageId: 'm0' }, { type: 'REASONING_MESSAGE_START', messageId: 'm0' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm1' }, { type: 'TOOL_CALL_START', toolCallId: 'c1' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm2' }, { type: 'TEXT_MESSAGE_END', messageId: 'm2' },
  ];
  for (const event of [start(), ...open]) assert.deepEqual(shown.take(event), [event]);
  assert.deepEqual(shown.take(start({ metadata: { holdfast: { resync: true } } })), [
    { type: 'TOOL_CALL_END', toolCallId: 'c1' }, { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
    { type: 'REASONING_MESSAGE_END', messageId: 'm0' }, { type: 'REASONING_END', messageId: 'm0' },
    { type: 'STEP_FINISHED', stepName: 's', subagentRunId: 'sub' }, { type: 'STEP_FINISHED', stepName: 's' },
  ]);
  assert.deepEqual(shown.take(start()), []);
});

test('an item that was opened again is closed once', () => {
  const shown = new Transcript();
  shown.take(start());
  shown.take({ type: 'TEXT_MESSAGE_START', messageId: 'm' });
  shown.take(start());
  shown.take({ type: 'TEXT_MESSAGE_START', messageId: 'm' });
  assert.deepEqual(types(shown.take(start())), ['TEXT_MESSAGE_END']);
});

test('a run keeps the id that the client knows it by', () => {
  const shown = new Transcript('mine');
  assert.deepEqual(shown.take(start({ metadata: { x: 1 } })), [start({ runId: 'mine', metadata: { x: 1, holdfast: { runId: 'r' } } })]);
  assert.deepEqual(shown.take({ type: 'RUN_FINISHED', threadId: 't', runId: 'r' }), [{ type: 'RUN_FINISHED', threadId: 't', runId: 'mine', metadata: { holdfast: { runId: 'r' } } }]);
});

test('without an id of its own, the client gets the first', () => {
  const shown = new Transcript();
  assert.deepEqual(shown.take(start()), [start()]);
  shown.take(start({ runId: 'another' }));
  const [end] = shown.take({ type: 'RUN_FINISHED', threadId: 't', runId: 'another' });
  assert.equal(end.runId, 'r');
});
