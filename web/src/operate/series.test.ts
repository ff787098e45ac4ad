import { describe, expect, it } from 'vitest';
import type { Overview, Point } from '../api/types.ts';
import { figuresOf, isEmpty, minutesOf, rowsOf, stacked, stepsOf, valueAt } from './series.ts';
import { fileName, readThreadFile } from '../threads/transfer.ts';

const point = (at: string, more: Partial<Point> = {}): Point => ({ at, running: 0, started: 0, finished: 0, failed: 0, waiting: 0, cancelled: 0, tokensIn: 0, tokensCached: 0, tokensOut: 0, ...more });

const told = (points: readonly Point[], now = '2026-03-01T10:10:05Z'): Pick<Overview, 'series' | 'now'> => ({ now, series: { stepSeconds: 10, points } });

describe('the figures of the server', () => {
  it('have a step for every time, also for those of which nothing is known', () => {
    const steps = stepsOf(told([point('2026-03-01T10:10:00Z', { finished: 2 })]), 10);
    expect(steps.times).toHaveLength(60);
    expect(steps.times.at(-1)).toBe(Date.parse('2026-03-01T10:10:00Z') / 1000);
    expect(steps.points.at(-1)).toHaveLength(1);
    expect(steps.points[0]).toEqual([]);
  });

  it('are added up where steps are wider than the server’s own', () => {
    const [runs] = figuresOf(told([point('2026-03-01T10:09:00Z', { finished: 2 }), point('2026-03-01T10:09:50Z', { finished: 3, failed: 1 })]), 60);
    expect(runs?.times).toHaveLength(60);
    expect(runs?.lines.map((l) => l.values.at(-2))).toEqual([5, 0, 0, 1]);
    expect(runs && valueAt(runs, runs.lines[0]!, null)).toBe(5);
    expect(runs && valueAt(runs, runs.lines[0]!, 0)).toBeNull();
  });

  it('say the last latency that was measured, and nothing where none was', () => {
    const figures = figuresOf(told([point('2026-03-01T10:05:00Z', { firstTokenMs: { p50: 20, p95: 80, count: 3 } }), point('2026-03-01T10:10:00Z')]), 10);
    const first = figures.find((f) => f.title === 'First token')!;
    expect(first.lines.map((l) => valueAt(first, l, null))).toEqual([20, 80]);
    expect(first.lines[0]?.values.filter((v) => v !== null)).toEqual([20]);
    expect(figures.filter(isEmpty).map((f) => f.title)).toEqual(['Runs', 'Tokens', 'Run time', 'Commit', 'Under way']);
  });

  it('stand on each other as bars', () => {
    const line = (form: 'bars' | 'line', values: (number | null)[]) => ({ name: '', colour: '', form, values });
    expect(stacked([line('bars', [1, null, 2]), line('bars', [1, 4, null]), line('line', [9, 9, 9])])).toEqual([[1, null, 2], [2, 4, null], [9, 9, 9]]);
  });

  it('are rows of a table, the newest first, without steps in which nothing was', () => {
    const [runs] = figuresOf(told([point('2026-03-01T10:08:00Z', { finished: 1 }), point('2026-03-01T10:09:00Z'), point('2026-03-01T10:10:00Z', { failed: 2 })]), 10);
    expect(rowsOf(runs!).map((r) => r.values)).toEqual([[0, 0, 0, 2], [1, 0, 0, 0]]);
  });

  it('go back as far as the server has lived, at most an hour', () => {
    const of = (startedAt: string) => minutesOf({ startedAt, now: '2026-03-01T10:00:00Z' }, [10, 30, 60]);
    expect([of('2026-03-01T09:59:00Z'), of('2026-03-01T09:40:00Z'), of('2026-02-01T00:00:00Z')]).toEqual([10, 30, 60]);
  });
});

describe('a thread as a file', () => {
  it('has a name that any system takes', () => {
    expect(fileName('Plan: “3 steps” / über')).toBe('plan-3-steps-u-ber.holdfast.json');
    expect(fileName('../../etc/passwd')).toBe('etc-passwd.holdfast.json');
    expect(fileName('???')).toBe('thread.holdfast.json');
  });

  it('says what is in it, or what is wrong with it', () => {
    const file = readThreadFile('a.json', JSON.stringify({ kind: 'holdfast.thread', version: 1, tenant: 'acme', thread: 't1', messages: [1, 2], records: [1] }));
    expect(file).toMatchObject({ thread: 't1', tenant: 'acme', messages: 2, records: 1 });
    expect(() => readThreadFile('a.txt', 'hello')).toThrow('a.txt is not JSON');
    expect(() => readThreadFile('a.json', '[]')).toThrow('a.json is no exported thread');
    expect(() => readThreadFile('a.json', 'null')).toThrow('a.json is no exported thread');
  });
});
