import { useSyncExternalStore } from 'react';
import { ago, duration, exactTime } from './time.ts';

/** A clock that all components share; it stands still while nobody looks at it. */
function clock(every: number) {
  let now = Date.now();
  let timer: ReturnType<typeof setInterval> | undefined;
  const listeners = new Set<() => void>();
  return {
    get: () => {
      const time = Date.now();
      if (!timer && Math.abs(time - now) >= every) now = time;
      return now;
    },
    subscribe(listener: () => void) {
      listeners.add(listener);
      timer ??= setInterval(() => {
        now = Date.now();
        for (const l of [...listeners]) l();
      }, every);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}

const slow = clock(15_000);
const quick = clock(1000);

/** Now, as milliseconds; it moves every 15 seconds, or every second. */
export function useNow(every: 'second' | 'quarter-minute' = 'quarter-minute'): number {
  const c = every === 'second' ? quick : slow;
  return useSyncExternalStore(c.subscribe, c.get);
}

/** Whether a time has come; what uses it is drawn again only when it has. */
export function usePast(at: number | string | Date | undefined): boolean {
  return useSyncExternalStore(quick.subscribe, () => at !== undefined && millis(at) <= quick.get());
}

const millis = (at: number | string | Date): number => new Date(at).getTime();

/** When something was, as one says it; the exact time is its title. */
export function Time({ at, live = true }: { at: number | string | Date; live?: boolean }) {
  const now = useNow();
  const time = millis(at);
  if (Number.isNaN(time)) return null;
  return <time className="num" dateTime={new Date(time).toISOString()} title={exactTime(time)}>{live ? ago(time, Math.max(now, time)) : exactTime(time)}</time>;
}

/** How long something takes, from since until now. */
function Elapsed({ since }: { since: number }) {
  return <>{duration(Math.max(0, useNow('second') - since))}</>;
}

/** How long something took, or takes until now: since a time, or so many milliseconds. */
export function Duration({ ms, since }: { ms?: number; since?: number | string | Date }) {
  return <span className="num">{ms !== undefined ? duration(ms) : since !== undefined ? <Elapsed since={millis(since)} /> : '–'}</span>;
}
