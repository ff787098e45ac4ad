// When in a replay each record is shown: as far after the one before as it was then, but
// nobody waits for long.
import type { Log } from '../log/record.ts';

/** The longest pause of a replay, in milliseconds: what took longer is cut short. */
export const longest = 1500;

/** So long is a record shown whose log says nothing of the time, in milliseconds. */
const untimed = 30;

export interface Schedule {
  /** For each record, milliseconds from the beginning of the replay. */
  readonly times: Float64Array;
  readonly length: number;
}

/** Spreads records of which the log does not say the time between those of which it does. */
function spread(times: Float64Array, from: number, to: number, end: number): void {
  const begin = from > 0 ? (times[from - 1] as number) : 0;
  for (let i = from; i < to; i++) times[i] = begin + ((end - begin) * (i - from + 1)) / (to - from + 1);
}

export function schedule(log: Log): Schedule {
  const times = new Float64Array(log.length);
  let [known, last] = [-1, 0];
  for (let i = 0; i < log.length; i++) {
    const at = log.at(i)?.at;
    if (at === undefined) continue;
    const before = known < 0 ? 0 : (times[known] as number);
    const gap = known < 0 ? untimed * i : Math.max(0, at - last);
    const pause = Math.min(gap, longest + untimed * (i - known - 1));
    times[i] = before + pause;
    spread(times, known + 1, i, times[i]);
    [known, last] = [i, at];
  }
  for (let i = known + 1; i < log.length; i++) times[i] = (i > 0 ? (times[i - 1] as number) : 0) + untimed;
  return { times, length: times.at(-1) ?? 0 };
}

/** How many records are shown at a time of the replay. */
export function positionAt({ times }: Schedule, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
