// Threads that were forked from each other, as a tree around one of them.
import type { ThreadInfo } from '../api/types.ts';
import { numberOf } from './words.ts';

/** A thread in the tree. */
export interface Relative {
  readonly thread: ThreadInfo;
  readonly depth: number;
  /** The one that is looked at. */
  readonly here: boolean;
  /** The number of the checkpoint it was forked from; '' for the first one. */
  readonly from: string;
}

const depthOf = (thread: ThreadInfo, all: ReadonlyMap<string, ThreadInfo>): number => {
  let depth = 0;
  const seen = new Set<string>();
  for (let each: ThreadInfo | undefined = thread; each?.parentThreadId && !seen.has(each.id); each = all.get(each.parentThreadId)) {
    seen.add(each.id);
    if (all.has(each.parentThreadId)) depth++;
  }
  return depth;
};

/** The relatives in the order in which a tree is read: each thread before those that were forked from it. */
export function treeOf(threads: readonly ThreadInfo[], here: string): Relative[] {
  const all = new Map(threads.map((thread) => [thread.id, thread]));
  const placed = new Set<string>();
  const rows: Relative[] = [];
  const put = (thread: ThreadInfo): void => {
    if (placed.has(thread.id)) return;
    placed.add(thread.id);
    rows.push({ thread, depth: depthOf(thread, all), here: thread.id === here, from: numberOf(thread.parentCheckpointId ?? '') });
    for (const child of all.values()) if (child.parentThreadId === thread.id) put(child);
  };
  for (const thread of all.values()) if (!thread.parentThreadId || !all.has(thread.parentThreadId)) put(thread);
  for (const thread of all.values()) put(thread);
  return rows;
}
