// Where in the log the inspector looks: at its end, or after a record that the address, or a
// replay, says.
import { useCallback } from 'react';
import { usePlace, useStudio } from '../app/context.tsx';
import { useStore } from '../app/store.ts';
import { useLog } from '../log/hooks.tsx';
import { numberOf, type Log } from '../log/record.ts';

export interface Position {
  /** How many records are shown. */
  readonly position: number;
  /** It is the end of the log, whatever comes. */
  readonly now: boolean;
  /** A replay, or who moves through it, changes it all the time. */
  readonly playing: boolean;
  /** Goes to where so many records are shown; undefined: to the end. */
  readonly go: (position: number | undefined) => void;
}

/** The cursor of the last record of so many, or of the next one that has a cursor. */
export function cursorAt(log: Log, position: number): string {
  for (let i = Math.max(0, position - 1); i < log.length; i++) {
    const cursor = log.at(i)?.cursor;
    if (cursor) return cursor;
  }
  return '';
}

export function usePosition(log: Log = useLog()): Position {
  const { router, playback } = useStudio();
  const { at } = usePlace();
  const playing = useStore(playback);
  const go = useCallback((position: number | undefined) => {
    const { checkpoint: _, ...more } = router.get().more ?? {};
    const cursor = position === undefined ? '' : cursorAt(log, position);
    router.change({ at: cursor || undefined, more: Object.keys(more).length > 0 ? more : undefined }, { replace: router.get().at !== undefined && cursor !== '' });
    playback.set(undefined);
  }, [router, playback, log]);
  const position = playing ?? (at === undefined ? log.length : log.positionOf(numberOf(at)));
  return { position: Math.min(position, log.length), now: playing === undefined && at === undefined, playing: playing !== undefined, go };
}
