// The key with which this tab asks the server, and who waits for one.
import type { Kept } from './storage.ts';
import { createStore, type Store } from './store.ts';

const name = 'holdfast.key';

export interface Keys {
  /** The key, or '' if there is none. */
  current(): string;
  /** Whether a key is asked for, and why. */
  asked: Pick<Store<'no' | 'missing' | 'refused' | 'another'>, 'get' | 'subscribe'>;
  /** Asks for another key than the one that was refused; resolves when there is one. */
  ask(refused: string): Promise<void>;
  /** Asks for a key in place of the one that is used; resolves when there is one, rejects when the person gives it up. */
  another(): Promise<void>;
  use(key: string): void;
  giveUp(): void;
}

/** Takes the token of the operator out of the address that the server printed when it started: it is the key of this tab. */
export function takeToken(window: Window, keys: Keys): boolean {
  const token = /^#token=([\w-]+)$/.exec(window.location.hash)?.[1];
  if (token === undefined) return false;
  keys.use(token);
  window.history.replaceState(null, '', '#/');
  return true;
}

export function createKeys(storage: Kept): Keys {
  const asked = createStore<'no' | 'missing' | 'refused' | 'another'>('no');
  let waiting: { resolve: () => void; reject: (why: Error) => void }[] = [];
  const end = (how: (w: (typeof waiting)[number]) => void) => {
    const all = waiting;
    waiting = [];
    asked.set('no');
    all.forEach(how);
  };
  const wait = () => new Promise<void>((resolve, reject) => {
    waiting.push({ resolve, reject });
  });
  const keys: Keys = {
    current: () => storage.getItem(name) ?? '',
    asked,
    ask(refused) {
      // Another request has got one in the meantime.
      if (refused !== keys.current()) return Promise.resolve();
      asked.set(refused ? 'refused' : 'missing');
      return wait();
    },
    another() {
      // A key that is needed is asked for as such.
      if (asked.get() === 'no') asked.set('another');
      return wait();
    },
    use(key) {
      storage.setItem(name, key);
      end((w) => w.resolve());
    },
    giveUp: () => end((w) => w.reject(new Error('No other key was given.'))),
  };
  return keys;
}
