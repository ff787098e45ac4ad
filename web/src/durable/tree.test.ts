import { describe, expect, it } from 'vitest';
import type { ThreadInfo } from '../api/types.ts';
import { treeOf } from './tree.ts';

const thread = (id: string, parentThreadId?: string, parentCheckpointId?: string): ThreadInfo => ({ id, agent: 'a', status: 'idle', runId: 'r', iteration: 0, cursor: '', updatedAt: '', etag: '', ...(parentThreadId && { parentThreadId }), ...(parentCheckpointId && { parentCheckpointId }) });

const shown = (threads: readonly ThreadInfo[], here: string) => treeOf(threads, here).map(({ thread: { id }, depth, here: is, from }) => `${'  '.repeat(depth)}${id}${is ? '*' : ''}${from && ` @${from}`}`);

describe('treeOf', () => {
  it('puts each thread before those that were forked from it', () => {
    expect(shown([thread('c', 'b', '000000000004'), thread('a'), thread('b', 'a', '000000000002'), thread('d', 'a')], 'b')).toEqual(['a', '  b* @2', '    c @4', '  d']);
  });
  it('begins with a thread whose parent is gone', () => {
    expect(shown([thread('b', 'gone', '3'), thread('c', 'b')], 'c')).toEqual(['b @3', '  c*']);
  });
  it('ends with threads that claim to be each other’s parents', () => {
    expect(shown([thread('a', 'b'), thread('b', 'a')], 'a')).toHaveLength(2);
  });
});
