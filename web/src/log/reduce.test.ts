import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { group, type RunGroup } from './group';
import { Log, type LogEvent, type LogRecord } from './record';
import { empty, itemOf, reduce } from './reduce';
import { logged, madeUp, seeded } from './testing';
import type { Item, View } from './view';

const golden = (name: string): LogEvent[] => readFileSync(new URL(`../../../internal/agui/testdata/${name}`, import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as LogEvent);

const began: LogEvent = { type: 'RUN_STARTED', threadId: 't', runId: 'r' };
const finished = (outcome: unknown = { type: 'success' }): LogEvent => ({ type: 'RUN_FINISHED', threadId: 't', runId: 'r', outcome });
const said = (id: string, ...deltas: string[]): LogEvent[] => [{ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }, ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta }))];
const end = (id: string): LogEvent => ({ type: 'TEXT_MESSAGE_END', messageId: id });
const user = (id: string, content: unknown) => ({ id, role: 'user', content });
const messages = (...all: unknown[]): LogEvent => ({ type: 'MESSAGES_SNAPSHOT', messages: all });
const custom = (name: string, value: unknown, timestamp?: number): LogEvent => ({ type: 'CUSTOM', name: `holdfast.${name}`, value, ...(timestamp === undefined ? {} : { timestamp }) });

const viewOf = (...events: LogEvent[]): View => reduce(Log.of(logged(events)));

/** The visible text of the rows, short. */
const rows = (view: View): string[] => view.items.map((item) => {
  const words: (string | undefined)[] = [item.kind, 'text' in item ? item.text : 'name' in item ? item.name : '', 'status' in item ? item.status : ''];
  return words.filter(Boolean).join(' ');
});

const find = <K extends Item['kind']>(view: View, kind: K): Extract<Item, { kind: K }> => {
  const found = view.items.find((item) => item.kind === kind);
  if (found === undefined) throw new Error(`no ${kind}`);
  return found as Extract<Item, { kind: K }>;
};

function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}

describe('events', () => {
  it('all those of AG-UI 1.0 are taken, and nothing is changed in place', () => {
    const events = golden('events.jsonl');
    expect(new Set(events.map((event) => event.type)).size).toBe(31);
    const log = Log.of(deepFreeze(logged([...events, ...events])));
    for (let n = 0; n <= log.length; n++) {
      const { items } = deepFreeze(reduce(log, n));
      expect(new Set(items.map((item) => item.key)).size).toBe(items.length);
    }
  });

  it('every form of a message is shown', () => {
    const view = viewOf(began, messages(...golden('messages.jsonl')));
    expect(rows(view)).toEqual(['text hello', 'text look', 'call f failed', 'text', 'reasoning hm', 'text be brief']);
    const [, look, call] = view.items;
    expect(look?.kind === 'text' && look.parts[0]?.type).toBe('image');
    expect(call?.kind === 'call' && [call.args, call.result]).toEqual(['{"a":', '42']);
  });

  it('text grows, and stays one message when it is opened again', () => {
    const view = viewOf(began, ...said('m', 'Hel', 'lo'), ...said('m', ' you'), end('m'), finished());
    expect(rows(view)).toEqual(['text Hello you']);
    expect([view.status, view.items[0]?.open]).toEqual(['done', false]);
  });

  it('chunks make messages, calls and reasoning', () => {
    const events: LogEvent[] = [
      began, { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'Hel' }, { type: 'TOOL_CALL_CHUNK', toolCallId: 'c', toolCallName: 'f', delta: '{' },
      { type: 'TEXT_MESSAGE_CHUNK', delta: 'lo' }, { type: 'TOOL_CALL_CHUNK', delta: '}' }, { type: 'REASONING_MESSAGE_CHUNK', messageId: 'x', delta: 'hm' },
      { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm2', delta: 'next' },
    ];
    const view = viewOf(...events);
    expect(rows(view)).toEqual(['text Hello', 'call f pending', 'reasoning hm', 'text next']);
    expect(view.items.filter((item) => item.kind === 'text').map((item) => item.open)).toEqual([false, true]);
    expect(rows(viewOf(...events, finished()))).toEqual(['text Hello', 'call f none', 'reasoning hm', 'text next']);
  });

  it('a call has its arguments, runs, and has a result and the time it took', () => {
    const call = { toolCallId: 'c' };
    const events: LogEvent[] = [began, { type: 'TOOL_CALL_START', ...call, toolCallName: 'add', parentMessageId: 'm' }, { type: 'TOOL_CALL_ARGS', ...call, delta: '{"a"' }, { type: 'TOOL_CALL_ARGS', ...call, delta: ':1}' }];
    expect(find(viewOf(...events), 'call')).toMatchObject({ status: 'pending', args: '{"a":1}', parentId: 'm' });
    events.push({ type: 'TOOL_CALL_END', ...call, timestamp: 1000 });
    expect(find(viewOf(...events), 'call').status).toBe('running');
    events.push({ type: 'TOOL_CALL_RESULT', ...call, messageId: 'm2', content: [{ type: 'text', text: '2' }, { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } }], timestamp: 1250 });
    expect(find(viewOf(...events), 'call')).toMatchObject({ status: 'done', result: '2', at: 1000, end: 1250, parts: [{ type: 'image', url: 'data:image/png;base64,AAAA' }], first: 2, last: 6 });
    events[events.length - 1] = { type: 'TOOL_CALL_RESULT', ...call, messageId: 'm2', content: 'no', metadata: { holdfast: { failed: true, notRun: true, code: 'mcp_unreachable' } } };
    expect(find(viewOf(...events), 'call')).toMatchObject({ status: 'failed', code: 'mcp_unreachable', notRun: true });
  });

  it('a call without a result at the end of its run says so', () => {
    const view = viewOf(began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, finished({ type: 'cancelled' }));
    expect(rows(view)).toEqual(['call f none', 'note Stopped.']);
    expect(view.status).toBe('stopped');
  });

  it('questions are open until the next run, and stay in the history', () => {
    const ask = [began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'ask' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, finished({ type: 'interrupt', interrupts: [{ id: 'i', reason: 'input_required', toolCallId: 'c' }] })];
    const open = viewOf(...ask);
    expect([open.status, open.interrupts.length, find(open, 'call').status, find(open, 'question').open]).toEqual(['waiting', 1, 'waiting', true]);
    const answered = viewOf(...ask, { ...began, runId: 'r2' }, { type: 'TOOL_CALL_RESULT', toolCallId: 'c', messageId: 'm', content: 'yes' });
    expect([answered.status, answered.interrupts, find(answered, 'call').status, find(answered, 'question').open]).toEqual(['running', [], 'done', false]);
  });

  it('calls of the frontend and calls from outside wait', () => {
    const call = [began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'approve' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }];
    const pending = viewOf(...call, finished({ type: 'success', pendingToolCallIds: ['c'] }));
    expect([find(pending, 'call').status, pending.pending]).toEqual(['waiting', ['c']]);
    const outside = viewOf(...call, { ...finished(), metadata: { holdfast: { outsideCalls: [{ toolCallId: 'c', toolName: 'approve', expiresAt: '2026-01-01T00:00:00Z', abandonable: true }] } } });
    expect([find(outside, 'call').status, outside.outside]).toEqual(['waiting', [{ toolCallId: 'c', toolName: 'approve', expiresAt: '2026-01-01T00:00:00Z', abandonable: true }]]);
  });

  it('a failure is shown with its code and its hint, and stream_cut is none', () => {
    const failed = { type: 'RUN_ERROR', message: 'no', code: 'model_failed', metadata: { holdfast: { hint: 'POST again.' } } };
    const view = viewOf(began, ...said('m', 'half'), failed);
    expect(find(view, 'note')).toMatchObject({ text: 'no', code: 'model_failed', hint: 'POST again.', tone: 'error' });
    expect([view.status, view.items[0]?.open, view.runs[0]?.code]).toEqual(['failed', false, 'model_failed']);
    expect(viewOf(began, ...said('m', 'half'), { type: 'RUN_ERROR', message: 'later', code: 'stream_cut' })).toMatchObject({ status: 'running' });
    const stands = viewOf(began, ...said('m', 'half'), { type: 'RUN_ERROR', message: 'It went back.', code: 'mid_execution' });
    expect(stands).toMatchObject({ status: 'stopped' });
    expect(rows(stands)).toEqual(['text half']);
  });

  it('what was said when a run failed stays, and says so', () => {
    const kept = [{ id: 'x', role: 'reasoning', content: 'hm', metadata: { holdfast: { partial: true, failed: true } } }, { id: 'm', role: 'assistant', content: 'half', metadata: { holdfast: { partial: true, failed: true } } }];
    const view = viewOf(began, { type: 'REASONING_MESSAGE_START', messageId: 'x', role: 'reasoning' }, { type: 'REASONING_MESSAGE_CONTENT', messageId: 'x', delta: 'hm' }, { type: 'REASONING_MESSAGE_END', messageId: 'x' }, ...said('m', 'half'), end('m'), { type: 'MESSAGES_SNAPSHOT', messages: kept }, { type: 'RUN_ERROR', message: 'no', code: 'model_failed' });
    expect(rows(view)).toEqual(['reasoning hm', 'text half', 'note no']);
    expect([find(view, 'reasoning').failed, find(view, 'text').failed]).toEqual([true, true]);
  });

  it('reasoning has a duration; if the provider hides it, the page can say so', () => {
    const m = { messageId: 'x' };
    const view = viewOf(
      began, { type: 'REASONING_START', ...m }, { type: 'REASONING_MESSAGE_START', ...m, role: 'reasoning', timestamp: 5 }, { type: 'REASONING_MESSAGE_CONTENT', ...m, delta: 'so' },
      { type: 'REASONING_MESSAGE_END', ...m, timestamp: 905 }, { type: 'REASONING_END', ...m }, { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'y', encryptedValue: 'e' },
    );
    expect(view.items.map((item) => item.kind === 'reasoning' && [item.text, item.hidden, item.at, item.end])).toEqual([['so', false, 5, 905], ['', true, undefined, undefined]]);
  });

  it('steps and subagents are rows', () => {
    const view = viewOf(began, { type: 'STEP_STARTED', stepName: 's' }, { type: 'STEP_FINISHED', stepName: 's' }, { type: 'SUBAGENT_STARTED', subagentRunId: 'g', name: 'n', description: 'd' }, { type: 'SUBAGENT_ERROR', subagentRunId: 'g', message: 'broke' });
    expect(rows(view)).toEqual(['step s', 'agent broke failed']);
  });

  it('the state: snapshot, change, and a change that does not fit', () => {
    const view = viewOf(began, { type: 'STATE_SNAPSHOT', snapshot: { a: [1] } }, { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/a/-', value: 2 }] }, { type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/b' }] });
    expect([view.state, view.stateAt]).toEqual([{ a: [1, 2] }, 3]);
  });

  it('a run has its usage, its result, its time and its process', () => {
    const view = viewOf({ ...began, timestamp: 10, metadata: { holdfast: { process: 'p_1' } } }, { ...finished(), timestamp: 30, result: { x: 1 }, usage: [{ provider: 'p', model: 'm', inputTokens: 3, outputTokens: 4 }] });
    expect(view.runs).toMatchObject([{ id: 'r', status: 'done', at: 10, end: 30, first: 1, last: 2, result: { x: 1 }, process: 'p_1', usage: [{ inputTokens: 3, totalTokens: 7, cachedInputTokens: 0 }] }]);
  });
});

describe('snapshots', () => {
  it('keep activities, and times that they do not contain', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const view = viewOf(
      began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f' }, { type: 'TOOL_CALL_END', toolCallId: 'c', timestamp: 10 },
      { type: 'TOOL_CALL_RESULT', toolCallId: 'c', messageId: 'm', content: '1', timestamp: 30 }, { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 'map', content: { x: 1 } },
      messages({ id: 'as', role: 'assistant', toolCalls: [call] }, { id: 'm', role: 'tool', toolCallId: 'c', content: '1' }),
    );
    expect(rows(view)).toEqual(['call f done', 'activity map']);
    expect(find(view, 'call')).toMatchObject({ at: 10, end: 30, first: 2 });
  });

  it('that are empty, before the full one, take nothing away', () => {
    const view = viewOf(began, messages(user('u', 'go')), custom('retry', {}, 1), ...said('m', 'done'), end('m'), finished(), { ...began, runId: 'r2' }, messages(), messages(user('u', 'go'), { id: 'm', role: 'assistant', content: 'done' }, user('u2', 'more')));
    expect(rows(view)).toEqual(['text go', 'note The model broke off. Its unfinished answer was discarded, and it was asked again.', 'text done', 'text more']);
  });

  it('keep the objects of what they do not change', () => {
    const log = Log.of(logged([began, messages(user('u', 'go')), ...said('m', 'done'), end('m'), finished(), { ...began, runId: 'r2' }, messages(user('u', 'go'), { id: 'm', role: 'assistant', content: 'done' }, user('u2', 'more'))]));
    const [before, after] = [reduce(log, log.length - 1), reduce(log)];
    expect(after.items.slice(0, 2)).toEqual(before.items);
    expect(after.items[0]).toBe(before.items[0]);
    expect(after.items[1]).toBe(before.items[1]);
  });

  it('keep what was left out of them for its size', () => {
    const image = (content: unknown) => ({ id: 'i', role: 'activity', activityType: 'holdfast.image', content });
    const whole = { mimeType: 'image/png', url: 'data:image/png;base64,AAAA' };
    const events = [began, ...said('a', 'Here'), end('a'), { type: 'ACTIVITY_SNAPSHOT', messageId: 'i', activityType: 'holdfast.image', content: whole }, finished()];
    const view = viewOf(...events, messages({ id: 'a', role: 'assistant', content: 'Here' }, image({ mimeType: 'image/png', leftOut: 4 })));
    expect(find(view, 'activity').content).toEqual(whole);
    expect(rows(viewOf(...events, messages(user('u', 'again'))))).toEqual(['text again']);
  });

  it('show arguments that a person has changed', () => {
    const call = (args: string) => ({ id: 'c', type: 'function', function: { name: 'pay', arguments: args } });
    const view = viewOf(began, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'pay' }, { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{"n":1}' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, finished(), { ...began, runId: 'r2' }, messages({ id: 'm', role: 'assistant', toolCalls: [call('{"n":2}')], metadata: { holdfast: { edited: true } } }));
    expect(find(view, 'call')).toMatchObject({ args: '{"n":2}', edited: true });
  });
});

describe('seams', () => {
  const dies = (cut: string, ...after: LogEvent[]): View => viewOf(
    { ...began, timestamp: 1000, metadata: { holdfast: { process: 'p_1' } } }, messages(user('u', 'go')), ...said('old', cut), end('old'),
    custom('takeover', { epoch: 2, iteration: 0, reason: 'owner_gone', from: 'p_1', process: 'p_2', outageMs: 500 }, 2000), messages(user('u', 'go')), ...after,
  );
  const newText = (...deltas: string[]): LogEvent[] => [{ type: 'TEXT_MESSAGE_START', messageId: 'new', role: 'assistant', timestamp: 2400 }, ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'new', delta }))];

  it('stand in the text, where the process died, if it is said again', () => {
    const view = dies('I thi', ...newText('I ', 'think', ' so'));
    expect(rows(view)).toEqual(['text go', 'seam', 'text I think so']);
    const seam = find(view, 'seam');
    expect(seam).toMatchObject({ place: 'inside', offset: 5, target: 't:new', from: 'p_1', process: 'p_2', reason: 'owner_gone', outageMs: 500, gapMs: 900, cut: { kind: 'text', text: 'I thi' } });
    expect(view.items[2]).toMatchObject({ seams: [{ seam: seam.key, offset: 5 }] });
    expect(view.runs[0]).toMatchObject({ takeovers: 1, process: 'p_2' });
  });

  it('wait while the new text catches up', () => {
    expect(find(dies('I thi', ...newText('I ')), 'seam')).toMatchObject({ place: 'catching_up', target: 't:new' });
    expect(find(dies('I thi'), 'seam')).toMatchObject({ place: 'before', target: '' });
  });

  it('stand before a text that says something else, or less', () => {
    expect(find(dies('I thi', ...newText('You ')), 'seam')).toMatchObject({ place: 'before', offset: 0 });
    expect(find(dies('I thi', ...newText('I '), end('new')), 'seam')).toMatchObject({ place: 'before' });
    expect(dies('I thi', ...newText('You '), end('new'), finished()).items[2]).toMatchObject({ seams: [] });
  });

  it('find the text behind reasoning that is thought again', () => {
    const view = dies('I thi', { type: 'REASONING_MESSAGE_START', messageId: 'x', role: 'reasoning' }, { type: 'REASONING_MESSAGE_CONTENT', messageId: 'x', delta: 'hm' }, { type: 'REASONING_MESSAGE_END', messageId: 'x' }, ...newText('I think'));
    expect(rows(view)).toEqual(['text go', 'reasoning hm', 'seam', 'text I think']);
    expect(find(view, 'seam')).toMatchObject({ place: 'inside', target: 't:new', offset: 5 });
  });

  it('are two after two deaths', () => {
    const view = dies('I think', ...newText('I th'), end('new'), custom('takeover', { epoch: 3, iteration: 0, reason: 'owner_gone' }, 3000), messages(user('u', 'go')), ...said('third', 'I think so'));
    const third = view.items.find((item) => item.key === 't:third');
    expect(third?.kind === 'text' && third.seams.map((mark) => mark.offset)).toEqual([4, 7]);
    expect(view.runs[0]?.takeovers).toBe(2);
  });

  it('are also between answers', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const kept = [user('u', 'go'), { id: 'a', role: 'assistant', toolCalls: [call] }];
    const view = viewOf(began, messages(...kept), custom('takeover', { epoch: 2, iteration: 0, reason: 'handed_over' }, 5), messages(...kept), { type: 'TOOL_CALL_RESULT', toolCallId: 'c', messageId: 't', content: 'ok' }, ...said('new', 'done'));
    expect(rows(view)).toEqual(['text go', 'call f done', 'seam', 'text done']);
    expect(find(view, 'seam').cut).toBeUndefined();
  });

  it('stay when a later run shows the history', () => {
    const view = dies('I thi', ...newText('I think'), end('new'), finished(), { ...began, runId: 'r2' }, messages(), messages(user('u', 'go'), { id: 'new', role: 'assistant', content: 'I think' }, user('u2', 'more')));
    expect(rows(view)).toEqual(['text go', 'seam', 'text I think', 'text more']);
    expect(view.items[2]).toMatchObject({ seams: [{ offset: 5 }] });
  });
});

describe('branches', () => {
  const first = [began, messages(user('u', 'go')), ...said('a', 'one'), end('a'), finished()];
  const edited = [{ ...began, runId: 'r2' }, messages(), messages(user('u2', 'stay')), custom('branched', { parentMessageId: '', leftMessageId: 'a', leftCheckpointId: 'cp2' }), ...said('b', 'two'), end('b'), finished()];

  it('have versions, and say which one is shown', () => {
    const view = viewOf(...first, ...edited);
    expect(rows(view)).toEqual(['text stay', 'text two']);
    expect(view.branches).toEqual([{ parentId: '', versions: [{ key: 't:u', checkpointId: 'cp2', number: 6 }, { key: 't:u2', checkpointId: '', number: 0 }], shown: 1 }]);
  });

  it('of a new answer begin with what comes first', () => {
    const again = [{ ...began, runId: 'r2' }, messages(user('u', 'go')), custom('branched', { parentMessageId: 'u', leftMessageId: 'a', leftCheckpointId: 'cp2' })];
    expect(viewOf(...first, ...again).branches[0]?.versions[1]?.key).toBe('');
    expect(viewOf(...first, ...again, ...said('b', 'two')).branches).toMatchObject([{ parentId: 'u', versions: [{ key: 't:a' }, { key: 't:b' }], shown: 1 }]);
  });

  it('are right although the log begins with the run that has left the first version', () => {
    expect(viewOf(...edited).branches).toEqual([{ parentId: '', versions: [{ key: '', checkpointId: 'cp2', number: 0 }, { key: 't:u2', checkpointId: '', number: 0 }], shown: 1 }]);
  });

  it('show the version that the thread has gone back to', () => {
    const back = [{ ...began, runId: 'r3' }, messages(user('u', 'go'), { id: 'a', role: 'assistant', content: 'one' }, user('u3', 'on'))];
    expect(viewOf(...first, ...edited, ...back).branches[0]?.shown).toBe(0);
  });

  it('take the remarks about what was left with them', () => {
    const view = viewOf(began, messages(user('u', 'go')), ...said('a', 'one'), custom('retry', {}), finished(), ...edited);
    expect(rows(view)).toEqual(['text stay', 'text two']);
  });
});

describe('reduce', () => {
  const seeds = Array.from({ length: 15 }, (_, i) => i + 100);
  const recordsOf = (seed: number): LogRecord[] => logged(madeUp(seed, { chunks: seed % 3 === 0 }).runs.flat());

  it.each(seeds)('is the same from scratch, step by step, and in any order (%i)', (seed) => {
    const records = recordsOf(seed);
    const log = Log.of(records);
    const random = seeded(seed);
    let grown = Log.of();
    for (const record of records) {
      grown = grown.append(record);
      expect(reduce(grown)).toEqual(reduce(Log.of(records.slice(0, grown.length))));
    }
    for (let i = 0; i < 40; i++) {
      const n = Math.floor(random() * (records.length + 1));
      expect(reduce(log, n)).toEqual(reduce(Log.of(records.slice(0, n))));
    }
  });

  it('goes back in a log that is longer than what is kept', () => {
    const records = logged(Array.from({ length: 40 }, (_, i) => madeUp(i, { runs: 1 }).runs[0] ?? []).flatMap((events, i) => events.map((event) => ({ ...event, ...(event.type.startsWith('RUN_') ? { runId: `r${i}` } : {}) }))));
    expect(records.length).toBeGreaterThan(1500);
    const log = Log.of(records);
    reduce(log);
    for (const n of [1400, 3, 777, 1024, 256, 0]) expect(reduce(log, n)).toEqual(reduce(Log.of(records.slice(0, n))));
  });

  it('keeps the objects of what has not changed', () => {
    const log = Log.of(logged([began, ...said('a', 'one'), ...said('b', 'two'), { type: 'TEXT_MESSAGE_CONTENT', messageId: 'b', delta: '!' }]));
    const [before, after] = [reduce(log, log.length - 1), reduce(log)];
    expect(after.items[0]).toBe(before.items[0]);
    expect(after.items[1]).not.toBe(before.items[1]);
    expect(reduce(log)).toBe(after);
  });

  it('is nothing before the first record', () => {
    expect(reduce(Log.of())).toEqual(empty);
    expect(reduce(Log.of(logged([began])), -5)).toEqual(empty);
    expect(reduce(Log.of(logged([began])), 99).status).toBe('running');
    expect(reduce(Log.of(logged([began])), Number.NaN)).toEqual(empty);
  });

  it('never throws, whatever is in the log', () => {
    const types = golden('events.jsonl').map((event) => event.type);
    const value = fc.oneof(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom('u', 'm', 'c', '__proto__', 'constructor'));
    const names = fc.constantFrom('messageId', 'toolCallId', 'delta', 'messages', 'snapshot', 'patch', 'content', 'value', 'name', 'outcome', 'metadata', 'input', 'runId', 'usage', 'role', 'timestamp', 'stepName');
    const event = fc.record({ type: fc.constantFrom(...types, 'constructor', 'toString', 'META') }).chain((typed) => fc.dictionary(names, value).map((more) => ({ ...more, ...typed, ...(typed.type === 'CUSTOM' ? { name: 'holdfast.takeover' } : {}) })));
    fc.assert(fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const log = Log.of(logged(events));
      const view = reduce(log);
      expect(view.position).toBe(log.length);
      expect(new Set(view.items.map((item) => item.key)).size).toBe(view.items.length);
      group(log);
    }), { numRuns: 300, seed: 7 });
  });

  it('takes nothing that is nested too deeply', () => {
    let deep: unknown = 'x';
    for (let i = 0; i < 5000; i++) deep = [deep];
    const view = viewOf(began, { type: 'STATE_SNAPSHOT', snapshot: { a: 1 } }, { type: 'STATE_SNAPSHOT', snapshot: deep }, { type: 'STATE_DELTA', delta: deep });
    expect(view.state).toEqual({ a: 1 });
  });

  it('does not take a name of an object for anything', () => {
    const view = viewOf(began, { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/__proto__', value: { polluted: true } }] }, messages({ id: '__proto__', role: 'user', content: 'hi' }), { type: 'constructor' });
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(rows(view)).toEqual(['text hi']);
  });

  it('shows no URL that could act', () => {
    const part = (value: string) => ({ type: 'image', source: { type: 'url', value } });
    const view = viewOf(began, messages(user('u', [part('javascript:alert(1)'), part('data:text/html;base64,AAAA'), part('http://x/y.png'), part('https://x/y.png'), part('data:image/png;base64,AAAA')])));
    expect(find(view, 'text').parts.map((each) => each.url)).toEqual(['', '', '', 'https://x/y.png', 'data:image/png;base64,AAAA']);
  });
});

describe('records and items', () => {
  it('lead to each other', () => {
    const log = Log.of(logged([began, ...said('m', 'a', 'b'), end('m'), custom('retry', {}), finished()]));
    const view = reduce(log);
    const note = find(view, 'note');
    expect(view.items[0]).toMatchObject({ first: 2, last: 5 });
    expect(itemOf(view, log.at(2) as LogRecord)).toBe(view.items[0]);
    expect(itemOf(view, log.at(5) as LogRecord)).toBe(note);
    expect(itemOf(view, log.at(0) as LogRecord)).toBeUndefined();
  });

  it('are grouped by run, iteration and call', () => {
    const call = (id: string): LogEvent[] => [{ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'f', parentMessageId: 'm' }];
    const log = Log.of(logged([
      { ...began, timestamp: 1 }, ...said('m', 'a', 'b'), end('m'), ...call('c1'), ...call('c2'), { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' }, { type: 'TOOL_CALL_END', toolCallId: 'c1', timestamp: 5 },
      { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', messageId: 't', content: 'x', timestamp: 9 }, ...said('n', 'c'), { ...finished(), timestamp: 20 },
    ]));
    const [run] = group(log) as [RunGroup];
    expect(run).toMatchObject({ runId: 'r', count: log.length, at: 1, end: 20, ended: true });
    expect(run.iterations.map((each) => [each.number, each.entries.map((entry) => `${entry.kind} ${entry.text} ${entry.records.length}`)])).toEqual([
      [0, ['run  1', 'text ab 4', 'call {} 4', 'call  1']], [1, ['text c 2', 'run  1']],
    ]);
    expect(run.iterations[0]?.entries[2]).toMatchObject({ key: 'c:c1', label: 'f', deltas: 1, at: 5, end: 9 });
    expect(group(log)).toBe(group(log));
  });

  it('all have a place in the groups, once', () => {
    for (let seed = 1; seed < 20; seed++) {
      const log = Log.of(logged(madeUp(seed).runs.flat()));
      const places = group(log).flatMap((run) => run.iterations.flatMap((iteration) => iteration.entries.flatMap((entry) => entry.records)));
      expect([...places].sort((a, b) => a - b)).toEqual(Array.from({ length: log.length }, (_, i) => i));
    }
  });
});
