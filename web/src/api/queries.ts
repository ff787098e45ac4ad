// Data that are read of the server and change without a stream, as TanStack queries. Each one asks
// again as often as somebody who looks at it would want, and not while the page is hidden.

import { infiniteQueryOptions, queryOptions, type QueryKey } from '@tanstack/react-query';
import * as actions from './actions';
import { ApiError, type Server } from './request';
import type { AgentList, CallList, CheckpointDetail, CheckpointList, MessageList, Overview, PageConfig, QuestionList, RunList, SettingList, ThreadInfo, ThreadList, ThreadState, ThreadUsage, Work } from './types';

/** How often, in milliseconds, something is asked again. */
const often = 3000;
const seldom = 30_000;

/** Whether asking again may help. */
const retry = (failures: number, error: unknown): boolean => failures < 3 && error instanceof ApiError && error.passes;

const polled = (refetchInterval: number) => ({ refetchInterval, refetchIntervalInBackground: false, retry }) as const;

function read<T>(server: Server, key: QueryKey, action: actions.Readable, refetchInterval = 0) {
  return queryOptions({
    queryKey: key,
    queryFn: ({ signal }) => server.json<T>(action, signal),
    ...(refetchInterval > 0 ? polled(refetchInterval) : { retry }),
  });
}

/** The queries to repeat after something has been done to a thread. */
export const threadKey = (thread: string): QueryKey => ['thread', thread];

/** The queries to repeat after any thread has changed. */
export const threadsKey: QueryKey = ['threads'];

/** The queries of a server. An operator may read the threads of another user. */
export function queries(server: Server, user = '') {
  const of = <T>(thread: string, what: QueryKey, action: actions.Readable, interval = 0) => read<T>(server, [...threadKey(thread), user, ...what], actions.as(user, action), interval);
  const paged = <T>(key: QueryKey, page: (before: string) => actions.Readable, next: (last: T) => string | undefined, interval: number) => infiniteQueryOptions({
    queryKey: key,
    queryFn: ({ signal, pageParam }) => server.json<T>(actions.as(user, page(pageParam)), signal),
    initialPageParam: '',
    getNextPageParam: next,
    ...polled(interval),
  });
  return {
    config: () => ({ ...read<PageConfig>(server, ['config'], actions.pageConfig()), staleTime: Infinity }),
    /** Threads, the most recently active first; `whose` is `*` for those of all users. */
    threads: (whose = '', limit = 50) => paged<ThreadList>([...threadsKey, user, whose, limit], (before) => actions.threads(before, limit, whose), ({ threads }) => (threads.length < limit ? undefined : threads.at(-1)?.updatedAt), often),
    thread: (id: string) => of<ThreadInfo>(id, [], actions.thread(id), often),
    messages: (id: string) => of<MessageList>(id, ['messages'], actions.messages(id)),
    state: (id: string) => of<ThreadState>(id, ['state'], actions.state(id)),
    runs: (id: string, limit = 50) => paged<RunList>([...threadKey(id), user, 'runs', limit], (before) => actions.runs(id, before, limit), ({ runs }) => (runs.length < limit ? undefined : runs.at(-1)?.id), seldom),
    checkpoints: (id: string, limit = 50) => paged<CheckpointList>([...threadKey(id), user, 'checkpoints', limit], (before) => actions.checkpoints(id, before, limit), ({ checkpoints }) => (checkpoints.length < limit ? undefined : checkpoints.at(-1)?.id), seldom),
    /** A checkpoint never changes, but for what is pending at the newest one. */
    checkpoint: (id: string, at: string) => of<CheckpointDetail>(id, ['checkpoint', at], actions.checkpointAt(id, at)),
    children: (id: string) => of<ThreadList>(id, ['children'], actions.children(id)),
    calls: (id: string, run = '') => of<CallList>(id, ['calls', run], actions.calls(id, run)),
    usage: (id: string) => of<ThreadUsage>(id, ['usage'], actions.usage(id), seldom),
    work: (id: string) => of<Work>(id, ['work'], actions.work(id), often),
    /** All open questions; a page may be short, or empty, and have a next one. */
    questions: () => paged<QuestionList>(['questions', user], (before) => actions.questions(before), ({ next }) => next, often),
    agents: () => ({ ...read<AgentList>(server, ['agents'], actions.agents()), staleTime: seldom }),
    overview: () => read<Overview>(server, ['overview'], actions.overview(), often),
    settings: () => read<SettingList>(server, ['settings'], actions.settings()),
  };
}
