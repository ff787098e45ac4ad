// The announcements for screen readers. The growing conversation is no live region: what happens in it
// is said here, in whole sentences.
import { createStore, type Store } from './store.ts';

export interface Said {
  polite: string;
  assertive: string;
}

export interface Announcer {
  said: Pick<Store<Said>, 'get' | 'subscribe'>;
  /** Says something: politely when the reader pauses, assertively at once (questions and errors only). */
  announce(text: string, how?: keyof Said): void;
}

export function createAnnouncer(): Announcer {
  const said = createStore<Said>({ polite: '', assertive: '' });
  return {
    said,
    announce(text, how = 'polite') {
      // The same words twice are a change only if they differ: a space that nobody hears.
      said.set((now) => ({ ...now, [how]: now[how] === text ? `${text}\u00a0` : text }));
    },
  };
}
