import { describe, expect, it } from 'vitest';
import { madeUp, logged } from '../log/testing.ts';
import { Log, type LogRecord } from '../log/record.ts';
import { waterfall } from '../log/waterfall.ts';
import { drawn, lanesOf, ticksOf, totalsOf } from './lanes.ts';
import { aboutRecord, countsOf, firstNumber, indexOf, refOf, rowOf, rowsOf, sinceBefore, type Chosen } from './rows.ts';
import { longest, positionAt, schedule } from './schedule.ts';
import { lookOn } from './search.ts';
import { cursorAt } from './position.ts';
import { stepAt } from './State.tsx';

const plain: Chosen = { grouped: true, toggled: new Set() };

const small = Log.of(logged([
  { type: 'RUN_STARTED', threadId: 't', runId: 'r1', timestamp: 1000 },
  { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant', timestamp: 1200 },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Hold ' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'fast' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1', timestamp: 1500 },
  { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'lookup', parentMessageId: 'm1', timestamp: 1500 },
  { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/n', value: 1 }], timestamp: 1600 },
  { type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c1', content: 'a word', role: 'tool', timestamp: 9000 },
  { type: 'RUN_FINISHED', threadId: 't', runId: 'r1', outcome: { type: 'success' }, timestamp: 9100 },
]));

const said = (chosen: Partial<Chosen> = {}): string[] => rowsOf(small, { ...plain, ...chosen }).map((row) => (row.kind === 'record' ? `#${row.index}` : row.kind === 'entry' ? `${row.entry.label} ${row.found}/${row.entry.records.length}` : row.kind));

describe('the rows of events', () => {
  it('are runs and what is in them, each text and each call one row', () => {
    expect(said()).toEqual(['run', 'Run started 1/1', 'assistant 4/4', 'lookup 2/2', 'State changed 1/1', 'Run finished 1/1']);
  });
  it('show the records of what is open, and nothing of a closed run', () => {
    const entry = rowsOf(small, plain).find((row) => row.kind === 'entry' && row.entry.kind === 'text');
    expect(said({ toggled: new Set([entry?.id ?? '']) })).toEqual(['run', 'Run started 1/1', 'assistant 4/4', '#1', '#2', '#3', '#4', 'lookup 2/2', 'State changed 1/1', 'Run finished 1/1']);
    expect(said({ toggled: new Set(['run:0:r1']) })).toEqual(['run']);
  });
  it('are the records alone, filtered by family', () => {
    expect(said({ grouped: false })).toHaveLength(small.length);
    expect(said({ grouped: false, kinds: new Set(['call']) })).toEqual(['#5', '#7']);
    expect(said({ kinds: new Set(['state']) })).toEqual(['run', 'State changed 1/1']);
    expect([...countsOf(small)]).toContainEqual(['text', 4]);
  });
  it('are the records of the log, and nothing that is only shown like one', () => {
    const [before, ...stands] = logged([{ type: 'MESSAGES_SNAPSHOT', messages: [] }, { type: 'RUN_STARTED', threadId: 't', runId: 'r1' }, { type: 'RUN_ERROR', message: 'no', code: 'model_failed' }]).map((record) => ({ ...record, cursor: '', number: 0, runId: 'r1' }));
    const more = Log.of([before as LogRecord, ...small.slice(), ...stands]);
    for (const grouped of [true, false]) expect(rowsOf(more, { ...plain, grouped })).toHaveLength(rowsOf(small, { ...plain, grouped }).length);
    expect([...countsOf(more)]).toEqual([...countsOf(small)]);
    expect(rowsOf(more, plain)[0]).toMatchObject({ kind: 'run', run: { count: small.length } });
    const progress = { tape: more.tape, query: 'run_', hits: new Set<number>(), at: 0 };
    expect(lookOn(more, progress, () => 0)).toBe(true);
    expect(progress.hits.size).toBe(2);
  });
  it('find what is in the JSON of records, and words that no piece has whole', () => {
    const look = (query: string) => {
      const progress = { tape: small.tape, query, hits: new Set<number>(), at: 0 };
      expect(lookOn(small, progress, () => 0)).toBe(true);
      return said({ found: { query, has: (index) => progress.hits.has(index) } });
    };
    expect(look('hold fast')).toEqual(['run', 'assistant 0/4']);
    expect(look('a word')).toEqual(['run', 'lookup 1/2']);
    expect(look('nothing like it')).toEqual([]);
  });
  it('stop searching when their time is over, and go on where they were', () => {
    const log = Log.of(logged(Array.from({ length: 100 }, (_, i) => ({ type: 'CUSTOM', name: `n${i}` }))));
    const progress = { tape: log.tape, query: 'n9', hits: new Set<number>(), at: 0 };
    let time = 0;
    const clock = () => (time += 20);
    let slices = 1;
    while (!lookOn(log, progress, clock)) slices++;
    expect(slices).toBeGreaterThan(3);
    expect(progress.hits.size).toBe(11);
  });
  it('have an address each, which leads back', () => {
    for (let i = 0; i < small.length; i++) {
      expect(indexOf(small, refOf(small, i))).toBe(i);
      expect(rowOf(rowsOf(small, { ...plain, grouped: false }), i)).toBe(i);
      expect(rowOf(rowsOf(small, plain), i)).toBeGreaterThan(0);
    }
    expect(indexOf(small, '900-x')).toBe(-1);
    expect(indexOf(small, 'nonsense')).toBe(-1);
    expect(indexOf(small, undefined)).toBe(-1);
    expect(rowOf(rowsOf(small, plain), -1)).toBe(-1);
    expect(firstNumber(small)).toBe(1);
  });
  it('lead to the one record that an archived text has become', () => {
    const archived = Log.of([...logged([{ type: 'RUN_STARTED', threadId: 't', runId: 'r' }]), ...logged([{ type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'x' }], 7)]);
    expect(indexOf(archived, '4-abc123')).toBe(1);
  });
  it('say what is in each record in a line, and how long after the one before it was', () => {
    expect(small.slice().map(aboutRecord)).toEqual(['', '', 'Hold ', 'fast', '', 'lookup', 'add /n', 'a word', 'success']);
    expect([0, 1, 2, 4, 7].map((i) => sinceBefore(small, i))).toEqual([undefined, 200, undefined, 300, 7400]);
    expect(aboutRecord(logged([{ type: 'RUN_ERROR', code: 'c', message: 'No.' }])[0] as never)).toBe('c · No.');
  });
  it('of logs that were made up: every record has one, and no row comes twice', () => {
    for (let seed = 0; seed < 30; seed++) {
      const log = Log.of(logged(madeUp(seed, { chunks: seed % 2 === 1 }).runs.flat()));
      const rows = rowsOf(log, plain);
      expect(new Set(rows.map((row) => row.id)).size).toBe(rows.length);
      expect(rows.flatMap((row) => (row.kind === 'entry' ? row.entry.records : [])).sort((a, b) => a - b)).toEqual(Array.from({ length: log.length }, (_, i) => i));
    }
  });
});

describe('a replay', () => {
  it('shows each record as far after the one before as it was, and cuts long pauses', () => {
    const { times, length } = schedule(small);
    expect(times[1]).toBe(200);
    expect(times[3]).toBeCloseTo(400);
    expect((times[7] ?? 0) - (times[6] ?? 0)).toBe(longest);
    expect(length).toBe(times[8]);
    expect([...times]).toEqual([...times].sort((a, b) => a - b));
    expect([positionAt(schedule(small), -1), positionAt(schedule(small), 200), positionAt(schedule(small), 1e9)]).toEqual([0, 2, 9]);
  });
  it('goes on where a log says nothing of the time, and has none without records', () => {
    const untimed = Log.of(logged([{ type: 'A' }, { type: 'B' }]));
    expect(schedule(untimed).length).toBeGreaterThan(0);
    expect(schedule(Log.of()).length).toBe(0);
  });
  it('has an address at every position', () => {
    expect(cursorAt(small, 3)).toBe('3-abc123');
    expect(cursorAt(small, 0)).toBe('1-abc123');
    expect(cursorAt(Log.of(), 1)).toBe('');
    expect(stepAt([3, 6], 6)).toBe(0);
    expect(stepAt([3, 6], 7)).toBe(1);
    expect(stepAt([3], 2)).toBe(-1);
  });
});

describe('the lanes of a waterfall', () => {
  const times = waterfall(small, 'r1');
  const spans = times?.spans ?? [];
  it('have the model in one row and tools in as many as run at once', () => {
    expect(lanesOf(spans).map((lane) => [lane.name, lane.spans.length])).toEqual([['Model', spans.length - 1], ['Tools', 1]]);
    const tool = spans.find((span) => span.kind === 'tool');
    if (!tool) throw new Error('no tool');
    expect(lanesOf([tool, { ...tool, id: 'other', lane: 1 }]).map((lane) => lane.name)).toEqual(['Tools', '']);
  });
  it('are drawn as far as they are in view and can be told apart', () => {
    const many = Array.from({ length: 1000 }, (_, i) => ({ ...spans[0]!, id: `${i}`, at: i, end: i + 0.5 }));
    expect(drawn(many, 0, 1, [0, 1000], undefined).length).toBeLessThan(600);
    expect(drawn(many, 0, 1, [0, 100], undefined).length).toBeLessThan(60);
    expect(drawn(many, 0, 1, [0, 100], many[900]).some((span) => span.id === '900')).toBe(true);
  });
  it('have ticks that can be read, and totals that count nothing twice', () => {
    expect(ticksOf(0, [0, 1000], 0.5)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(ticksOf(0, [0, 1e9], 1e-6).length).toBeLessThanOrEqual(60);
    const tool = { ...spans[0]!, kind: 'tool' as const };
    expect(totalsOf({ spans: [{ ...tool, at: 0, end: 10 }, { ...tool, at: 5, end: 20 }, { ...tool, at: 6, end: 7 }] })).toEqual([{ kind: 'tool', name: 'Tools', ms: 20 }]);
  });
});
