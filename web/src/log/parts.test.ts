// The smaller parts: patches, words, logs, what is computed of a log.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Book } from './book';
import { diff, pointer, stateRecords } from './changes';
import { withoutCursor } from './follow';
import { tooDeep } from './json';
import { notice } from './notices';
import { apply, equal } from './patch';
import { Log, numberOf, record, type LogEvent, type LogRecord } from './record';
import { logged, madeUp } from './testing';
import { waterfall, type Taken } from './waterfall';
import { span, spaced } from './words';

describe('a patch', () => {
  it('adds, removes, replaces, copies, moves and tests', () => {
    expect(apply({ a: [1, 2] }, [{ op: 'add', path: '/a/1', value: 9 }])).toEqual({ a: [1, 9, 2] });
    expect(apply({ a: [1, 2], 'x/y~': 0 }, [{ op: 'remove', path: '/a/0' }, { op: 'replace', path: '/x~1y~0', value: 3 }])).toEqual({ a: [2], 'x/y~': 3 });
    expect(apply({ a: { b: 1 } }, [{ op: 'copy', from: '/a', path: '/c' }, { op: 'move', from: '/a/b', path: '/d' }, { op: 'test', path: '/c/b', value: 1 }])).toEqual({ a: {}, c: { b: 1 }, d: 1 });
    expect(apply({ a: 1 }, [{ op: 'replace', path: '', value: [] }])).toEqual([]);
  });

  it.each([
    [{ op: 'remove', path: '/no' }], [{ op: 'replace', path: '/no', value: 1 }], [{ op: 'add', path: '/a/5', value: 1 }], [{ op: 'add', path: '/a/01', value: 1 }],
    [{ op: 'test', path: '/a', value: [] }], [{ op: 'move', from: '/a', path: '/a/0' }], [{ op: 'what', path: '' }], [{ op: 'add', path: 'a', value: 1 }], [{ op: 'add', path: '/a/0/x', value: 1 }], [{ op: 'add', path: 7, value: 1 }], ['x'],
  ])('that does not fit is refused whole: %j', (...operations) => {
    const doc = { a: [1] };
    expect(() => apply(doc, [{ op: 'add', path: '/b', value: 1 }, ...operations])).toThrow();
    expect(doc).toEqual({ a: [1] });
  });

  it('keeps what it does not touch, and changes nothing in place', () => {
    const doc = { a: { b: 1 }, c: { d: 2 } };
    const after = apply(doc, [{ op: 'add', path: '/a/x', value: 3 }]) as typeof doc;
    expect(after.c).toBe(doc.c);
    expect(doc).toEqual({ a: { b: 1 }, c: { d: 2 } });
  });

  it('leads from one value to another by what diff finds', () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (a, b) => {
      const changes = diff(a, b);
      expect(changes.length === 0).toBe(equal(a, b));
      // Elements at the end of a list are removed from its end.
      const removed = changes.filter((change) => change.kind === 'removed').reverse().map((change) => ({ op: 'remove', path: pointer(change.path) }));
      const set = changes.filter((change) => change.kind !== 'removed').map((change) => ({ op: change.kind === 'added' ? 'add' : 'replace', path: pointer(change.path), value: change.after }));
      expect(equal(apply(a, [...removed, ...set]), b)).toBe(true);
    }), { numRuns: 300, seed: 3 });
  });
});

describe('words', () => {
  it('are said for every notice that the documentation lists', () => {
    const documented = [...readFileSync(new URL('../../../docs/protocol.md', import.meta.url), 'utf8').matchAll(/^\| `(holdfast\.\w+)` \|/gm)].map(([, name]) => name as string);
    expect(documented.length).toBeGreaterThan(10);
    // These two have lines of their own, and the last two are activities.
    const elsewhere = ['holdfast.takeover', 'holdfast.branched', 'holdfast.progress', 'holdfast.plan'];
    for (const name of documented.filter((each) => !elsewhere.includes(each))) {
      // Not the plain form, which begins with the name.
      expect(notice(name, { title: 'x' }), name).not.toMatch(new RegExp('^' + spaced(name.slice('holdfast.'.length)) + '[:.]'));
    }
  });

  it('say the facts', () => {
    expect(notice('holdfast.retried', { tool: 'pay', attempts: 1, helped: false })).toBe('pay was tried 1 time; no attempt succeeded.');
    expect(notice('holdfast.fallback', { from: 'a/b', to: 'c/d' })).toBe('a/b could not answer. From here on, c/d does.');
    expect(notice('holdfast.described', { title: 'New' })).toBe('Renamed to “New”.');
    expect(notice('holdfast.store_recovered', { outageMs: 2300 })).toBe('The store was unavailable for 2.3 s. Nothing was lost.');
    expect(notice('holdfast.budget_exceeded', { scope: 'run', used: 10, limit: 9, unit: 'tokens', needed: 5 })).toBe('Budget used: the run has used 10 of 9 tokens, and the next call needs 5.');
    expect(notice('holdfast.rate_limited', { limit: 3, window: '1m0s', tool: 'pay' })).toBe('Rate limit reached: 3 calls of pay in 1m.');
    expect(notice('holdfast.schema_changed', { removed: ['a.b'], added: [], changed: [{ name: 'x.y', from: 1, to: 2 }] })).toBe('This thread was written by another version of the agent’s state; now without b, y 1 → 2.');
    expect(notice('holdfast.thread_large', { bytes: 3 << 20 })).toBe('This thread is large: 3.0 MB.');
  });

  it('are found for what nobody has foreseen, and for nothing else', () => {
    expect(notice('holdfast.new_thing', { someName: 3, deep: {}, list: ['a', 'b'] })).toBe('New thing: some name 3, list a, b.');
    expect(notice('other.thing', {})).toBe('');
    expect(notice('holdfast.constructor', null)).toBe('Constructor.');
    for (const value of [null, 7, 'x', [], { tool: {} }]) expect(notice('holdfast.rate_limited', value)).toBeTypeOf('string');
  });

  it('say how long something took', () => {
    expect([span(61_000), span(9_960), span(1500)]).toEqual(['1 min', '10 s', '1.5 s']);
  });
});

describe('a log', () => {
  it('is a value: two ways to go on are two logs', () => {
    const [a, b, c] = logged([{ type: 'A' }, { type: 'B' }, { type: 'C' }]) as [LogRecord, LogRecord, LogRecord];
    const first = Log.of([a]);
    const [left, right] = [first.append(b), first.append(c)];
    expect([first, left, right].map((log) => log.slice().map((each) => each.event.type))).toEqual([['A'], ['A', 'B'], ['A', 'C']]);
    expect(first.append()).toBe(first);
  });

  it('finds positions, also where numbers are missing', () => {
    const at = (number: number): LogRecord => ({ cursor: number === 0 ? '' : `${number}-x`, number, runId: 'r', event: { type: 'X' } });
    const log = Log.of([at(0), at(3), at(0), at(7), at(8), at(0)]);
    expect([0, 2, 3, 5, 7, 8, 99].map((number) => log.positionOf(number))).toEqual([1, 1, 2, 2, 4, 5, 5]);
    expect(log.cursor).toBe('8-x');
    expect(Log.of().positionOf(1)).toBe(0);
  });

  it('takes only events, and knows their cursors', () => {
    expect(record('x', '1-a', 'r')).toBeUndefined();
    expect(record({ type: 7 }, '1-a', 'r')).toBeUndefined();
    expect(record({ type: 'RUN_STARTED', runId: 'mine', metadata: { holdfast: { runId: 'real' } } }, '12-abc', '')).toMatchObject({ runId: 'real', number: 12 });
    expect(['57-3fq7xk', '', 'x', '5'].map(numberOf)).toEqual([57, 0, 0, 5]);
  });

  it('has events without the cursor that they came with', () => {
    const event = { type: 'X', metadata: { holdfast: { cursor: '4-a' } } };
    expect(withoutCursor(event)).toEqual({ event: { type: 'X' }, cursor: '4-a' });
    expect(withoutCursor({ type: 'X', metadata: { a: 1, holdfast: { cursor: '4-a', failed: true } } })).toEqual({ event: { type: 'X', metadata: { a: 1, holdfast: { failed: true } } }, cursor: '4-a' });
    expect(withoutCursor({ type: 'X' })).toEqual({ event: { type: 'X' }, cursor: '' });
  });

  it('that is nested too deeply is found without going deep', () => {
    let deep: { a: unknown } = { a: 1 };
    for (let i = 0; i < 100_000; i++) deep = { a: deep };
    expect([tooDeep(deep), tooDeep({ a: [1, { b: [] }] })]).toEqual([true, false]);
  });
});

describe('a book', () => {
  const started = (runId: string): LogEvent => ({ type: 'RUN_STARTED', runId });
  const chapter = (runId: string, from: number, ...types: string[]): LogRecord[] => logged([started(runId), ...types.map((type) => ({ type }))], from);

  it('has runs in their order, however they come', () => {
    const book = new Book();
    book.add('r2', chapter('r2', 3, 'X'));
    book.add('r1', chapter('r1', 1, 'X'));
    expect(book.log.slice().map((each) => each.number)).toEqual([1, 2, 3, 4]);
    expect([book.oldest, book.newest, book.cursorOf('r1')]).toEqual(['r1', 'r2', '2-abc123']);
  });

  it('takes a record once, and tells if one is missing', () => {
    const book = new Book();
    const [a, b, c] = chapter('r1', 1, 'X', 'Y') as [LogRecord, LogRecord, LogRecord];
    expect([book.append(a), book.append(c), book.append(b), book.append(b), book.append(c)]).toEqual([true, false, true, true, true]);
    expect(book.log.length).toBe(3);
    const [next] = chapter('r2', 4) as [LogRecord];
    const [later] = chapter('r3', 9) as [LogRecord];
    expect([book.append(later), book.append(next)]).toEqual([false, true]);
  });

  it('forgets how the thread stood when its log goes on', () => {
    const book = new Book();
    book.add('r1', chapter('r1', 1, 'X'));
    book.stand([{ cursor: '', number: 0, runId: 'r1', event: { type: 'STATE_SNAPSHOT', snapshot: 1 } }]);
    expect([book.log.length, book.records.length]).toEqual([3, 2]);
    book.append((chapter('r2', 3) as [LogRecord])[0]);
    expect(book.log.slice().map((each) => each.event.type)).toEqual(['RUN_STARTED', 'X', 'RUN_STARTED']);
  });

  it('knows whether its runs say what was there before them', () => {
    const book = new Book();
    book.add('r1', logged([started('r1'), { type: 'TEXT_MESSAGE_START' }]));
    expect(book.tellsBefore('r1')).toBe(false);
    book.seed('r1', [{ cursor: '', number: 0, runId: 'r1', event: { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user' }] } }]);
    expect([book.tellsBefore('r1'), book.log.length]).toEqual([true, 3]);
    book.drop('r1');
    expect(book.log.length).toBe(0);
  });
});

describe('what is computed of a log', () => {
  it('which records are about the state', () => {
    const log = Log.of(logged([{ type: 'RUN_STARTED', runId: 'r' }, { type: 'STATE_SNAPSHOT', snapshot: { a: [1], b: 2 } }, { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/a/-', value: 2 }, { op: 'remove', path: '/b' }] }]));
    expect(stateRecords(log)).toEqual([1, 2]);
    expect(diff({ a: [1], b: 2 }, { a: [1, 2] })).toEqual([{ path: ['a', 1], kind: 'added', before: undefined, after: 2 }, { path: ['b'], kind: 'removed', before: 2, after: undefined }]);
    expect(diff(undefined, { a: 1 })).toEqual([{ path: [], kind: 'added', before: undefined, after: { a: 1 } }]);
  });

  const call = (id: string, at: number): LogEvent[] => [{ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: id, timestamp: at }, { type: 'TOOL_CALL_END', toolCallId: id, timestamp: at + 10 }];
  const result = (id: string, timestamp: number): LogEvent => ({ type: 'TOOL_CALL_RESULT', toolCallId: id, messageId: 't' + id, content: 'x', timestamp });

  it('a run in time, with calls at the same time in lanes of their own', () => {
    const log = Log.of(logged([
      { type: 'RUN_STARTED', runId: 'r', timestamp: 1000 }, { type: 'TEXT_MESSAGE_START', messageId: 'm', timestamp: 1200 }, { type: 'TEXT_MESSAGE_END', messageId: 'm', timestamp: 1500 },
      ...call('a', 1500), ...call('b', 1500), result('a', 1800), result('b', 2000), { type: 'TEXT_MESSAGE_START', messageId: 'n', timestamp: 2100 }, { type: 'TEXT_MESSAGE_END', messageId: 'n', timestamp: 2400 },
      { type: 'RUN_FINISHED', runId: 'r', timestamp: 2450, outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'x' }] } }, { type: 'RUN_STARTED', runId: 'r2', timestamp: 9000 },
    ]));
    const taken: Taken[] = [{ id: 'c1', createdAt: new Date(2005).toISOString(), runId: 'r', iteration: 1, metadata: { source: 'loop' } }, { id: 'c9', createdAt: new Date(9000).toISOString(), runId: 'r2', iteration: 0, metadata: { source: 'input' } }];
    const fall = waterfall(log, 'r', taken);
    expect(fall?.spans.map(({ kind, label, at, end, lane }) => [kind, label, at, end, lane])).toEqual([
      ['waiting', 'Waiting for the model', 1000, 1200, 0], ['model', 'Model', 1200, 1510, 0], ['tool', 'a', 1510, 1800, 0], ['tool', 'b', 1510, 2000, 1],
      ['waiting', 'Waiting for the model', 2000, 2100, 0], ['model', 'Model', 2100, 2400, 0], ['person', 'Waiting for an answer', 2450, 9000, 0],
    ]);
    expect(fall).toMatchObject({ at: 1000, end: 9000, moments: [{ id: 'c1', at: 2005, label: 'Iteration 1' }] });
    expect(waterfall(log, 'nobody')).toBeUndefined();
    expect(waterfall(log, 'r', [], [{ toolCallId: 'a', startedAt: new Date(1600).toISOString(), endedAt: new Date(1700).toISOString() }])?.spans.find((span) => span.label === 'a')).toMatchObject({ at: 1600, end: 1700 });
  });

  it('a run that nobody ran for a while, and one that goes on', () => {
    const log = Log.of(logged([
      { type: 'RUN_STARTED', runId: 'r', timestamp: 1000 }, { type: 'TEXT_MESSAGE_START', messageId: 'm', timestamp: 1200 }, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'I' },
      { type: 'CUSTOM', name: 'holdfast.takeover', value: { epoch: 2, reason: 'owner_gone', outageMs: 700 }, timestamp: 2000 }, { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user', content: 'x' }] },
      { type: 'TEXT_MESSAGE_START', messageId: 'n', timestamp: 2100 }, ...call('a', 2200),
    ]));
    const spans = waterfall(log, 'r')?.spans ?? [];
    expect(spans.find((span) => span.kind === 'takeover')).toMatchObject({ at: 1300, end: 2000, failed: true });
    // Pieces of a text say no times: the answer that was cut off was still coming when its process died.
    expect(spans.find((span) => span.kind === 'model')).toMatchObject({ at: 1200, end: 1300, open: false });
    expect(spans.filter((span) => span.open).map((span) => span.kind)).toEqual(['model', 'tool']);
  });

  it('has no span that ends before it begins, in anything made up', () => {
    for (let seed = 1; seed < 40; seed++) {
      const { runs } = madeUp(seed);
      const log = Log.of(logged(runs.flat()));
      for (let i = 0; i < runs.length; i++) for (const each of waterfall(log, `run${i}`)?.spans ?? []) expect(each.end).toBeGreaterThanOrEqual(each.at);
    }
  });
});
