// A thread's store in React.

import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useSyncExternalStore, type ReactNode } from 'react';
import type { Server } from '../api/request';
import type { Log } from './record';
import { ThreadStore, type Snapshot, type Surroundings } from './store';
import type { View } from './view';

const Opened = createContext<ThreadStore | undefined>(undefined);

/** Opens a thread for everything below it, and leaves it when another one is shown. An idle one is not asked for: it does not exist yet. */
export function Thread({ server, id, user = '', page, idle = false, children }: { server: Server; id: string; user?: string; page: Surroundings; idle?: boolean; children: ReactNode }): ReactNode {
  const store = useMemo(() => new ThreadStore({ server, thread: id, user, page }), [server, id, user, page]);
  useEffect(() => (idle ? undefined : store.open()), [store, idle]);
  return <Opened.Provider value={store}>{children}</Opened.Provider>;
}

/** The store of the thread that is shown. */
export function useThread(): ThreadStore {
  const store = useContext(Opened);
  if (store === undefined) throw new Error('useThread is for what is inside of <Thread>.');
  return store;
}

/** Something of the store; what is below is drawn again only when it is another value. */
export function useSnapshot<T>(select: (snapshot: Snapshot) => T, same: (a: T, b: T) => boolean = Object.is): T {
  const store = useThread();
  const last = useRef<{ of: Snapshot; select: unknown; value: T } | undefined>(undefined);
  const read = useCallback((): T => {
    const of = store.get();
    const old = last.current;
    if (old !== undefined && old.of === of && old.select === select) return old.value;
    const value = select(of);
    const kept = old !== undefined && same(old.value, value) ? old.value : value;
    last.current = { of, select, value: kept };
    return kept;
  }, [store, select, same]);
  return useSyncExternalStore(store.subscribe, read, read);
}

/** Something of what is to be seen now. */
export function useView<T>(select: (view: View) => T, same?: (a: T, b: T) => boolean): T {
  return useSnapshot(useCallback((snapshot: Snapshot) => select(snapshot.view), [select]), same);
}

const logOf = (snapshot: Snapshot): Log => snapshot.log;

/** The records. */
export const useLog = (): Log => useSnapshot(logOf);

const standingOf = ({ standing, error, sending }: Snapshot): Pick<Snapshot, 'standing' | 'error' | 'sending'> => ({ standing, error, sending });

const sameStanding = (a: ReturnType<typeof standingOf>, b: ReturnType<typeof standingOf>): boolean => a.standing === b.standing && a.error === b.error && a.sending === b.sending;

/** How the connection and the thread are. */
export const useStanding = (): ReturnType<typeof standingOf> => useSnapshot(standingOf, sameStanding);
