// The text of the browser's tab while one is elsewhere: the icon shows how the thread stands, or
// that a question is open. Threads and parts of the server set the title themselves.
import { useCallback, useEffect } from 'react';
import { useSnapshot } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import type { Status } from '../log/view.ts';
import { usePlace } from './context.tsx';
import type { Place } from './place.ts';

const statusOf = (snapshot: Snapshot): Status => snapshot.view.status;

const signs: Partial<Record<Status, string>> = { running: '-running', waiting: '-waiting', failed: '-failed' };

/** The sign of the icon: nothing, running, waiting or failed. */
export function signOf(place: Place, status: Status, questions: string): string {
  const sign = place.page === 'thread' && place.thread !== undefined ? signs[status] : undefined;
  return sign ?? (questions === '' ? '' : '-waiting');
}

export function TabSigns({ questions }: { questions: string }) {
  const place = usePlace();
  const status = useSnapshot(useCallback(statusOf, []));
  const sign = signOf(place, status, questions);
  useEffect(() => {
    document.querySelector('link[rel="icon"]')?.setAttribute('href', `./ui/favicon${sign}.svg`);
  }, [sign]);
  useEffect(() => {
    if (place.page === 'questions') document.title = `${questions && `(${questions}) `}Questions · Holdfast`;
    if (place.page === 'lost') document.title = 'Not found · Holdfast';
  }, [place.page, questions]);
  return null;
}
