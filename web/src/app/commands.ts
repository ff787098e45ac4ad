// Everything one can do, by name: the palette lists it, the help shows its keys, and the
// keyboard starts it. Panels put their commands in while they are shown.
import { createStore, type Store } from './store.ts';

export interface Command {
  /** Unique among what is shown at a time. */
  id: string;
  /** The label in the palette and the help: "Fork from here". */
  title: string;
  /** The heading under which it is listed. */
  group: string;
  /**
   * The key: a single one ("c", "?", "[", "Escape"), or with modifiers ("Mod+K", "Shift+Enter").
   * Mod is Ctrl, and Cmd on a Mac.
   */
  keys?: string;
  /** More words by which the palette finds it. */
  words?: string;
  /** Whether it makes sense now; without it, always. */
  when?: () => boolean;
  /** Not in the palette: only the key makes sense. */
  hidden?: boolean;
  run: () => void;
}

export interface Commands {
  list: Pick<Store<readonly Command[]>, 'get' | 'subscribe'>;
  /** Adds commands until the returned function is called. Later ones take precedence for a key. */
  add(commands: readonly Command[]): () => void;
}

export function createCommands(): Commands {
  const list = createStore<readonly Command[]>([]);
  return {
    list,
    add(commands) {
      list.set((now) => [...now, ...commands]);
      return () => list.set((now) => now.filter((c) => !commands.includes(c)));
    },
  };
}

interface Stroke {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}

/** Whether a key event is what keys says. Shift is part of what letters and signs are, and not asked for with them. */
export function strokeMatches(keys: string, e: Stroke, mac: boolean): boolean {
  const parts = keys.split(/\+(?=.)/);
  const key = parts.pop() ?? '';
  const mod = parts.includes('Mod');
  if (e.altKey || (mac ? e.metaKey : e.ctrlKey) !== mod || (mac ? e.ctrlKey : e.metaKey)) return false;
  if (key.length > 1 || mod) {
    if (e.shiftKey !== parts.includes('Shift')) return false;
    return e.key.toLowerCase() === key.toLowerCase();
  }
  return e.key === key;
}

/** Whether what has the focus takes letters itself. */
export function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  if (target.closest('textarea, select, [contenteditable=""], [contenteditable="true"], [role="textbox"], [role="combobox"]')) return true;
  const input = target.closest('input');
  return input !== null && !['checkbox', 'radio', 'button', 'submit', 'range', 'file'].includes(input.type);
}

/** The command for a key event, if there is one: the last that was added, and makes sense now. */
export function commandFor(commands: readonly Command[], e: Stroke & { target: EventTarget | null }, { letters, mac }: { letters: boolean; mac: boolean }): Command | undefined {
  return commands.findLast((c) => {
    if (!c.keys || !strokeMatches(c.keys, e, mac)) return false;
    const single = !c.keys.includes('Mod+') && c.keys !== 'Escape';
    if (single && (!letters || takesText(e.target))) return false;
    return c.when?.() ?? true;
  });
}
