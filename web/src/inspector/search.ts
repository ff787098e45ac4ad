// Looks for a text in the JSON of records, a little at a time, so that the page stays quick
// while a long log is read. A record that was looked at once is not looked at again when the log grows.
import { useEffect, useRef, useState } from 'react';
import type { Log } from '../log/record.ts';
import { listed, type Found } from './rows.ts';

/** How long the page may be busy at a time, in milliseconds. */
const slice = 12;

interface Progress {
  readonly tape: Log['tape'];
  readonly query: string;
  readonly hits: Set<number>;
  at: number;
}

export interface Searched {
  readonly found: Found | undefined;
  /** How many records have it so far. */
  readonly count: number;
  readonly busy: boolean;
}

const nothing: Searched = { found: undefined, count: 0, busy: false };

/** Looks at records until the time is over; true if none is left. */
export function lookOn(log: Log, progress: Progress, now: () => number): boolean {
  const end = now() + slice;
  while (progress.at < log.length) {
    if (listed(log, progress.at) && JSON.stringify(log.at(progress.at)?.event).toLowerCase().includes(progress.query)) progress.hits.add(progress.at);
    progress.at++;
    if (progress.at % 16 === 0 && now() >= end) return progress.at >= log.length;
  }
  return true;
}

/** Looks for a text; small and capital letters are the same. */
export function useSearch(log: Log, text: string): Searched {
  const query = text.trim().toLowerCase();
  const progress = useRef<Progress | undefined>(undefined);
  const [searched, setSearched] = useState<Searched>(nothing);
  useEffect(() => {
    if (query === '') {
      progress.current = undefined;
      setSearched(nothing);
      return undefined;
    }
    let current = progress.current;
    if (current === undefined || current.query !== query || current.tape !== log.tape || current.at > log.length) {
      current = { tape: log.tape, query, hits: new Set(), at: 0 };
      progress.current = current;
    }
    const here = current;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let told = 0;
    const step = () => {
      const done = lookOn(log, here, () => performance.now());
      if (done || performance.now() - told > 200) {
        told = performance.now();
        const { hits } = here;
        setSearched({ found: { query, has: (index) => hits.has(index) }, count: hits.size, busy: !done });
      }
      if (!done) timer = setTimeout(step);
    };
    step();
    return () => clearTimeout(timer);
  }, [log, query]);
  return query === '' ? nothing : searched;
}
