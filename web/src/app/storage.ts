// The page's storage in the browser. It may keep nothing, and then even asking for it throws.

export type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The storage that `of` returns; without one, what is kept lasts as long as the page. */
export function storageOf(of: () => Storage): Kept {
  try {
    const storage = of();
    storage.getItem('');
    return storage;
  } catch {
    const kept = new Map<string, string>();
    return { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => void kept.set(name, value), removeItem: (name) => void kept.delete(name) };
  }
}
