// The checkpoints of a thread as a picture: in the order in which they were taken, on lanes.
// The lowest lane is the way to where the thread stands; what a rewind left is on others.
import type { Checkpoint } from '../api/types.ts';

/** A checkpoint with its place in the picture. */
export interface Dot {
  readonly checkpoint: Checkpoint;
  /** From 0, oldest first. */
  readonly index: number;
  /** 0 is the way to the newest one. */
  readonly lane: number;
  /** The index of the one that it follows; -1 if that is not in the list. */
  readonly parent: number;
  /** Whether the thread, where it stands now, came past it. */
  readonly current: boolean;
  /** The first of a run that is listed. */
  readonly begins: boolean;
}

export interface Graph {
  readonly dots: readonly Dot[];
  readonly lanes: number;
}

/** The number of a checkpoint: ids sort as checkpoints were taken. */
const byId = (a: Checkpoint, b: Checkpoint): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** The index of each one's parent. The parent of a fork's first checkpoint is in another thread. */
function parentsOf(list: readonly Checkpoint[]): number[] {
  const at = new Map(list.map((checkpoint, index) => [checkpoint.id, index]));
  return list.map(({ metadata }, index) => {
    const parent = metadata.parentThreadId ? undefined : at.get(metadata.parentCheckpointId ?? '');
    return parent !== undefined && parent < index ? parent : -1;
  });
}

/** Gives each checkpoint a lane: every line that ends somewhere gets one, from where it leaves another. */
function lanesOf(parents: readonly number[]): number[] {
  const lanes = parents.map(() => -1);
  /** Of each lane, the first index that is taken. */
  const taken: number[] = [];
  for (let end = parents.length - 1; end >= 0; end--) {
    if (lanes[end] !== -1) continue;
    const line: number[] = [];
    for (let i = end; i >= 0 && lanes[i] === -1; i = parents[i] ?? -1) line.push(i);
    const from = parents[line.at(-1) ?? 0] ?? -1;
    const free = taken.findIndex((first, lane) => lane > 0 && first > end);
    const lane = taken.length === 0 ? 0 : free === -1 ? taken.length : free;
    taken[lane] = Math.max(0, from);
    for (const i of line) lanes[i] = lane;
  }
  return lanes;
}

/** Draws the checkpoints, in whatever order they are listed. */
export function graphOf(checkpoints: readonly Checkpoint[]): Graph {
  const list = [...checkpoints].sort(byId);
  const parents = parentsOf(list);
  const lanes = lanesOf(parents);
  const dots = list.map((checkpoint, index) => ({
    checkpoint, index,
    lane: lanes[index] ?? 0,
    parent: parents[index] ?? -1,
    current: lanes[index] === 0,
    begins: list[index - 1]?.runId !== checkpoint.runId,
  }));
  return { dots, lanes: Math.max(1, ...lanes.map((lane) => lane + 1)) };
}

/** The dots past which the thread came to where it stands, oldest first. */
export const wayOf = (graph: Graph): Dot[] => graph.dots.filter((dot) => dot.current);

/**
 * Where the arrow keys lead from a checkpoint: to the one before or after it. On a line that
 * was left, along that line. undefined after the last one, which is now.
 */
export function neighbour(graph: Graph, id: string | undefined, by: -1 | 1): Dot | undefined {
  const { dots } = graph;
  const from = id === undefined ? undefined : dots.find((dot) => dot.checkpoint.id === id);
  // Now is where the newest one is, as long as nothing has happened since.
  if (!from) return by < 0 ? wayOf(graph).at(-1) : undefined;
  if (by < 0) return dots[from.parent] ?? dots[from.index - 1];
  return dots.find((dot) => dot.parent === from.index && dot.lane === from.lane) ?? dots.find((dot) => dot.parent === from.index);
}
