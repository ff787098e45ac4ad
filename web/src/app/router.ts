// The router: the place in the address bar, as a store. Back and forward work, because the
// browser's history is the only state.
import { formatPlace, parsePlace, type Place } from './place.ts';
import type { Store } from './store.ts';

export interface Router extends Pick<Store<Place>, 'get' | 'subscribe'> {
  /** Goes to a place. replace leaves no entry in the history: for what is no step of a person. */
  go(place: Place, how?: { replace?: boolean }): void;
  /** Goes to the place that differs by this much. undefined takes a part away. */
  change(part: Partial<Place>, how?: { replace?: boolean }): void;
  /** Stops following the address bar. */
  close(): void;
}

export function createRouter(window: Window): Router {
  let hash = window.location.hash;
  let place = parsePlace(hash);
  const listeners = new Set<() => void>();
  const read = () => {
    if (window.location.hash === hash) return;
    hash = window.location.hash;
    place = parsePlace(hash);
    for (const listener of [...listeners]) listener();
  };
  window.addEventListener('hashchange', read);
  window.addEventListener('popstate', read);
  const router: Router = {
    get: () => place,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    go(next, { replace = false } = {}) {
      const to = formatPlace(next);
      if (to === window.location.hash) return;
      if (replace) window.history.replaceState(null, '', to);
      else window.history.pushState(null, '', to);
      read();
    },
    change: (part, how) => router.go({ ...place, ...part }, how),
    close() {
      window.removeEventListener('hashchange', read);
      window.removeEventListener('popstate', read);
    },
  };
  return router;
}
