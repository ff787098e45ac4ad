// Short messages that go away by themselves, with one thing to do about them at most.
import { createStore, type Store } from './store.ts';

export interface Toast {
  text: string;
  tone?: 'neutral' | 'good' | 'bad';
  /** The action that undoes it. The toast goes away when it is used. */
  action?: { label: string; run: () => void };
  /** Called when it goes away without its action: what could be undone is now done. */
  onGone?: () => void;
  /** How long it stays, in milliseconds. */
  lasts?: number;
}

export interface ShownToast extends Toast {
  id: number;
}

export interface Toasts {
  list: Pick<Store<readonly ShownToast[]>, 'get' | 'subscribe'>;
  /** Shows a toast; the returned function takes it away. */
  show(toast: Toast): () => void;
  /** Takes a toast away. */
  close(id: number): void;
  /** Uses a toast's action. */
  act(id: number): void;
}

/** At most this many are shown; an older one goes away for another. */
const most = 4;

export function createToasts(): Toasts {
  const list = createStore<readonly ShownToast[]>([]);
  let last = 0;
  const take = (id: number): ShownToast | undefined => {
    const found = list.get().find((t) => t.id === id);
    list.set((now) => (found ? now.filter((t) => t !== found) : now));
    return found;
  };
  const toasts: Toasts = {
    list,
    show(toast) {
      const id = ++last;
      while (list.get().length >= most) toasts.close(list.get()[0].id);
      list.set((now) => [...now, { ...toast, id }]);
      return () => toasts.close(id);
    },
    close: (id) => take(id)?.onGone?.(),
    act: (id) => take(id)?.action?.run(),
  };
  return toasts;
}
