// The parts of the page that every panel may use: where one is, what one likes, commands,
// announcements, toasts. One object, made once, handed down; tests make their own.
import { createContext, useCallback, useContext, useEffect, useRef, type ReactNode } from 'react';
import { createAnnouncer, type Announcer } from './announcer.ts';
import { createCommands, type Command, type Commands } from './commands.ts';
import { createKeys, takeToken, type Keys } from './keys.ts';
import { formatPlace, type Place } from './place.ts';
import { createPreferences, type Preferences } from './preferences.ts';
import { createRouter, type Router } from './router.ts';
import { storageOf, type Kept } from './storage.ts';
import { createStore, useStore, type Store } from './store.ts';
import { createToasts, type Toasts } from './toasts.ts';

/** The dialog that is open over the page. */
export type Layer = 'none' | 'palette' | 'help' | 'import';

export interface Studio {
  router: Router;
  preferences: Store<Preferences>;
  commands: Commands;
  announcer: Announcer;
  toasts: Toasts;
  layer: Store<Layer>;
  /** How many records of the log are shown while it is replayed; the address says it when the replay rests. */
  playback: Store<number | undefined>;
  keys: Keys;
  /** The preferences kept in this browser. */
  storage: Kept;
}

export function createStudio(window: Window): Studio {
  const storage = storageOf(() => window.localStorage);
  const keys = createKeys(storageOf(() => window.sessionStorage));
  takeToken(window, keys);
  window.addEventListener('hashchange', () => takeToken(window, keys) && window.location.reload());
  return {
    router: createRouter(window),
    preferences: createPreferences(storage),
    commands: createCommands(),
    announcer: createAnnouncer(),
    toasts: createToasts(),
    layer: createStore<Layer>('none'),
    playback: createStore<number | undefined>(undefined),
    keys,
    storage,
  };
}

const Context = createContext<Studio | null>(null);

export function StudioProvider({ studio, children }: { studio: Studio; children: ReactNode }) {
  return <Context value={studio}>{children}</Context>;
}

export function useStudio(): Studio {
  const studio = useContext(Context);
  if (!studio) throw new Error('a component of Studio is used outside of it');
  return studio;
}

/** Where one is. */
export const usePlace = (): Place => useStore(useStudio().router);

/** The address of a place, for links: a link can be opened in another tab, a button cannot. */
export function usePlaceLink(): (part: Partial<Place>) => string {
  const place = usePlace();
  return (part) => formatPlace({ ...place, ...part });
}

/** The preferences, and how to change some of them. */
export function usePreferences(): [Preferences, (part: Partial<Preferences>) => void] {
  const { preferences } = useStudio();
  return [useStore(preferences), useCallback((part: Partial<Preferences>) => preferences.set((now) => ({ ...now, ...part })), [preferences])];
}

/** Offers commands while the component is shown. Their actions may change with every render; which there are, with their ids, titles and keys. */
export function useCommands(commands: readonly Command[]): void {
  const { commands: registry } = useStudio();
  const latest = useRef(commands);
  useEffect(() => {
    latest.current = commands;
  });
  const shape = JSON.stringify(commands.map(({ id, title, keys, group }) => [id, title, keys, group]));
  useEffect(() => registry.add(latest.current.map((c, i) => ({
    ...c,
    run: () => latest.current[i]?.run(),
    when: () => latest.current[i]?.when?.() ?? true,
  }))), [registry, shape]);
}

/** Says something to screen readers. */
export const useAnnounce = () => useStudio().announcer.announce;

/** Shows a toast. */
export const useToast = () => useStudio().toasts.show;
