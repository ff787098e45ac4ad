import { describe, expect, it } from 'vitest';
import { graphOf, neighbour, wayOf } from './graph.ts';
import type { Checkpoint } from '../api/types.ts';

/** Checkpoints from "id parent run", all of one thread. */
export function list(...lines: string[]): Checkpoint[] {
  return lines.map((line) => {
    const [id = '', parent = '', runId = 'r1'] = line.split(' ');
    return {
      id, threadId: 't', createdAt: '2026-01-01T00:00:00Z', format: 9, agent: 'a', runId, status: 'running', iteration: 1,
      metadata: { source: 'loop', step: 1, ...(parent === '-' ? {} : { parentCheckpointId: parent }) },
    };
  });
}

const lanes = (...lines: string[]) => graphOf(list(...lines)).dots.map((dot) => dot.lane);

describe('graphOf', () => {
  it('puts a thread that never went back on one lane, oldest first', () => {
    const graph = graphOf(list('3 2 r2', '2 1', '1 -'));
    expect(graph.dots.map((dot) => dot.checkpoint.id)).toEqual(['1', '2', '3']);
    expect(graph.lanes).toBe(1);
    expect(graph.dots.map((dot) => dot.begins)).toEqual([true, false, true]);
  });
  it('puts what a rewind left on another lane', () => {
    // 4 went back to 1; 2 and 3 were left.
    expect(lanes('1 -', '2 1', '3 2', '4 1', '5 4')).toEqual([0, 1, 1, 0, 0]);
  });
  it('uses a lane again when it is free', () => {
    expect(lanes('1 -', '2 1', '3 1', '4 3', '5 3')).toEqual([0, 1, 0, 1, 0]);
  });
  it('does not draw two lines over each other', () => {
    // 3 leaves 1 and 4 leaves 2, which is on the way that 3 left.
    expect(lanes('1 -', '2 1', '3 2', '4 2', '5 1')).toEqual([0, 1, 2, 1, 0]);
  });
  it('begins where the list begins, if older ones were pruned', () => {
    expect(lanes('7 6', '8 7')).toEqual([0, 0]);
    expect(graphOf(list('7 6')).dots[0]?.parent).toBe(-1);
  });
  it('does not take the parent of another thread for its own', () => {
    const [first] = list('2 1');
    const forked = { ...first!, metadata: { ...first!.metadata, parentThreadId: 'other' } };
    expect(graphOf([...list('1 -'), forked]).dots[1]?.parent).toBe(-1);
  });
  it('takes whatever it is given', () => {
    expect(graphOf([])).toEqual({ dots: [], lanes: 1 });
    expect(lanes('1 1', '2 9', '3 2')).toEqual([1, 0, 0]);
  });
});

describe('neighbour', () => {
  const graph = graphOf(list('1 -', '2 1', '3 2', '4 1', '5 4'));
  const go = (id: string | undefined, by: -1 | 1) => neighbour(graph, id, by)?.checkpoint.id;
  it('leads from now to the newest, and along the way', () => {
    expect(go(undefined, -1)).toBe('5');
    expect(go('5', -1)).toBe('4');
    expect(go('4', -1)).toBe('1');
    expect(go('1', 1)).toBe('4');
    expect(go('5', 1)).toBeUndefined();
    expect(go(undefined, 1)).toBeUndefined();
  });
  it('stays on a line that was left', () => {
    expect(go('2', 1)).toBe('3');
    expect(go('3', -1)).toBe('2');
    expect(go('3', 1)).toBeUndefined();
  });
  it('knows the way', () => {
    expect(wayOf(graph).map((dot) => dot.checkpoint.id)).toEqual(['1', '4', '5']);
  });
});
