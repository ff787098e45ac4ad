// Which record is selected. The address says it, so that a record has a link; while somebody
// holds a key down the address follows a moment later, as browsers allow only so many changes.
import { useCallback, useEffect, useRef, useState } from 'react';
import { usePlace, useStudio } from '../app/context.tsx';
import { useThread } from '../log/hooks.tsx';
import type { Log } from '../log/record.ts';
import { firstNumber, indexOf, refOf } from './rows.ts';

/** How long the address waits, in milliseconds. */
const calm = 150;

export interface Selection {
  /** The index of the record; -1 if none is selected, or it is not loaded. */
  readonly index: number;
  readonly ref: string | undefined;
  readonly select: (index: number) => void;
  readonly clear: () => void;
}

export function useSelection(log: Log): Selection {
  const { router } = useStudio();
  const place = usePlace();
  const addressed = place.more?.['record'] ?? place.at;
  const [ref, setRef] = useState(addressed);
  const written = useRef(addressed);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (addressed === written.current) return;
    written.current = addressed;
    clearTimeout(timer.current);
    setRef(addressed);
  }, [addressed]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const put = useCallback((next: string | undefined) => {
    setRef(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const { record: _, ...more } = router.get().more ?? {};
      written.current = next ?? router.get().at;
      const to = { ...more, ...(next !== undefined && { record: next }) };
      router.change({ more: Object.keys(to).length > 0 ? to : undefined }, { replace: true });
    }, calm);
  }, [router]);
  const select = useCallback((index: number) => put(refOf(log, index)), [put, log]);
  const clear = useCallback(() => put(undefined), [put]);
  const index = indexOf(log, ref);
  useEarlier(log, ref);
  return { index, ref, select, clear };
}

/** Loads earlier runs, as long as the selected record is before what is loaded. */
function useEarlier(log: Log, ref: string | undefined): void {
  const store = useThread();
  const missing = ref !== undefined && Number.parseInt(ref, 10) > 0 && log.length > 0 && Number.parseInt(ref, 10) < firstNumber(log);
  useEffect(() => {
    if (missing && store.get().earlier.length > 0) void store.loadEarlier().catch(() => {});
  }, [missing, store, log]);
}
