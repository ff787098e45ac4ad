// A person's preferences, kept in this browser. The keys theme and density are also read by
// public/ui/theme.js, before the first paint.
import type { Kept } from './storage.ts';
import { createStore, type Store } from './store.ts';

export interface Preferences {
  theme: 'system' | 'light' | 'dark';
  density: 'comfortable' | 'compact';
  /** Whether things may move: as the system says, or never. */
  motion: 'system' | 'reduced';
  /** Whether single letters are shortcuts. */
  keys: boolean;
  /** Whether answers are shown while they are written, or when a sentence is whole. */
  streaming: boolean;
  /** Which side regions are open, and how wide they are, in pixels. */
  threads: boolean;
  inspector: boolean;
  threadsWidth: number;
  inspectorWidth: number;
}

export const defaults: Preferences = {
  theme: 'system', density: 'comfortable', motion: 'system', keys: true, streaming: true,
  threads: true, inspector: false, threadsWidth: 264, inspectorWidth: 440,
};

const name = 'holdfast.preferences';

function load(storage: Kept): Preferences {
  let stored: Record<string, unknown> = {};
  try {
    stored = JSON.parse(storage.getItem(name) ?? '{}') ?? {};
  } catch {
    // Not ours: the defaults.
  }
  // Only what is of the right kind: another version may have written it.
  const known = Object.entries(stored).filter(([key, value]) => key in defaults && typeof value === typeof defaults[key as keyof Preferences]);
  return { ...defaults, ...Object.fromEntries(known) };
}

/** The store of the preferences; what is set is kept in storage. */
export function createPreferences(storage: Kept): Store<Preferences> {
  const store = createStore(load(storage));
  store.subscribe(() => {
    try {
      storage.setItem(name, JSON.stringify(store.get()));
    } catch {
      // No room: they last as long as the page.
    }
  });
  return store;
}

/** Writes what the styles look at to the root element. */
export function applyPreferences(root: HTMLElement, { theme, density, motion }: Preferences): void {
  const set = (key: string, value: string | undefined) => {
    if (value === undefined) delete root.dataset[key];
    else root.dataset[key] = value;
  };
  set('theme', theme === 'system' ? undefined : theme);
  set('density', density === 'compact' ? density : undefined);
  set('motion', motion === 'reduced' ? motion : undefined);
}
