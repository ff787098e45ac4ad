// The server and what is read of it, for every panel: one connection with the tab's key, one
// cache, and the store of the thread that is shown.
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { curl } from '../api/curl.ts';
import { queries } from '../api/queries.ts';
import type { PageConfig } from '../api/types.ts';
import { baseOf, connect, type Action, type Server } from '../api/request.ts';
import { Thread } from '../log/hooks.tsx';
import { surroundings, uuid } from '../log/page.ts';
import type { Surroundings } from '../log/store.ts';
import { copyText } from '../ui/CopyButton.tsx';
import { usePlace, useStudio, useToast } from './context.tsx';
import { createStore, type Store } from './store.ts';

interface Data {
  readonly server: Server;
  readonly page: Surroundings;
  /** Threads that are deleted unless somebody takes it back; lists leave them out. */
  readonly leaving: Store<ReadonlySet<string>>;
}

const Context = createContext<Data | null>(null);

const newClient = () => new QueryClient({ defaultOptions: { queries: { staleTime: 1000, refetchOnWindowFocus: true } } });

/** Connects the page with the server that it came from. Tests bring a server of their own. */
export function DataProvider({ server: given, children }: { server?: Server; children: ReactNode }) {
  const { keys, storage } = useStudio();
  const [client] = useState(newClient);
  const data = useMemo<Data>(() => ({
    server: given ?? connect(baseOf(window.location), keys),
    page: surroundings(window, storage),
    leaving: createStore<ReadonlySet<string>>(new Set()),
  }), [given, keys, storage]);
  // With another key one may do other things.
  useEffect(() => keys.asked.subscribe(() => {
    if (keys.asked.get() === 'no') void client.invalidateQueries({ queryKey: ['config'] });
  }), [keys, client]);
  // Code that a first message will need; by then it is there, whatever becomes of the server.
  useEffect(() => {
    const timer = setTimeout(() => void import('../log/follow.ts').catch(() => {}), 300);
    return () => clearTimeout(timer);
  }, []);
  return <Context value={data}><QueryClientProvider client={client}>{children}</QueryClientProvider></Context>;
}

function useData(): Data {
  const data = useContext(Context);
  if (!data) throw new Error('a component that reads the server is used outside of its page');
  return data;
}

export const useServer = (): Server => useData().server;

/** The threads that are about to be deleted. */
export const useLeaving = (): Store<ReadonlySet<string>> => useData().leaving;

/** The queries; of another user's threads where the place says so. */
export function useQueries(): ReturnType<typeof queries> {
  const { server } = useData();
  const { user } = usePlace();
  return useMemo(() => queries(server, user), [server, user]);
}

/** The id of the thread that is shown, or of the one that a first message begins. */
const ThreadId = createContext('');
export const useThreadId = (): string => useContext(ThreadId);

/** The store of the thread that is shown, for what is below. A new thread has one too, which asks the server nothing before it is begun. */
export function ThreadScope({ children }: { children: ReactNode }) {
  const { server, page } = useData();
  const { page: shown, thread, user } = usePlace();
  const [fresh, setFresh] = useState(() => uuid(window.crypto));
  // The next new thread is another one.
  useEffect(() => {
    if (thread === fresh) return () => setFresh(uuid(window.crypto));
    return undefined;
  }, [thread, fresh]);
  const id = (shown === 'thread' && thread) || fresh;
  return <ThreadId value={id}><Thread server={server} id={id} user={user} page={page} idle={shown !== 'thread' || !thread}>{children}</Thread></ThreadId>;
}

/** Copies actions as commands for a shell, a line each, and says so. */
export function useCopyCurl(): (...all: Action[]) => void {
  const server = useServer();
  const toast = useToast();
  return (...all) => {
    const withKey = Object.keys(server.headers()).length > 0;
    copyText(all.map((action) => curl(server.base, action, withKey)).join('\n')).then(() => toast({ text: 'Copied as curl' }), (err: Error) => toast({ text: err.message, tone: 'bad' }));
  };
}

/** The page's configuration; empty while it is not known, and from a server that has none. */
export function useConfig(): Partial<PageConfig> {
  const { data } = useQuery(useQueries().config());
  return data ?? {};
}
