// The threads of all users, for operators. They can be read, and each look is logged.
import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import * as actions from '../api/actions.ts';
import type { ThreadInfo } from '../api/types.ts';
import { useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useConfig, useCopyCurl, useQueries } from '../app/data.tsx';
import { formatPlace } from '../app/place.ts';
import { nameOf, standingOf } from '../threads/standing.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { InfoIcon, SearchIcon, TerminalIcon } from '../ui/icons.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { StatusDot } from '../ui/StatusDot.tsx';
import { plural } from '../ui/time.ts';
import { Time } from '../ui/Time.tsx';
import { Unread } from './Denied.tsx';

/** The threads that every word fits: titles, ids, users, agents, how they stand, codes of errors. */
export function fitting(threads: readonly ThreadInfo[], wanted: string): readonly ThreadInfo[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return threads;
  return threads.filter((t) => {
    const said = `${nameOf(t)} ${t.id} ${t.user ?? ''} ${t.agent} ${standingOf(t).text} ${t.outcome === 'error' ? 'failed' : ''} ${t.code ?? ''}`.toLowerCase();
    return words.every((w) => said.includes(w));
  });
}

function Row({ thread }: { thread: ThreadInfo }) {
  const { tone, text } = standingOf(thread);
  const asks = thread.status === 'interrupted';
  return (
    <tr>
      <th scope="row" className="operate-thread">
        <a className="truncate" href={formatPlace({ page: 'thread', thread: thread.id, user: thread.user })} title={thread.id}>{nameOf(thread)}</a>
      </th>
      <td className="operate-user"><span className="truncate">{thread.user ?? ''}</span></td>
      <td className="operate-wide"><span className="truncate">{thread.agent}</span></td>
      <td><span className="row" title={thread.message}><StatusDot tone={tone} /><span>{asks ? 'waiting for an answer' : text}</span>{thread.code && <code className="operate-code">{thread.code}</code>}</span></td>
      <td className="operate-end">{Number.isNaN(Date.parse(thread.updatedAt)) ? '' : <Time at={thread.updatedAt} />}</td>
    </tr>
  );
}

export function AllThreads() {
  const { more } = usePlace();
  const { router } = useStudio();
  const { auth } = useConfig();
  const copy = useCopyCurl();
  const { data, error, isPending, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({ ...useQueries().threads('*'), refetchInterval: false });
  const all = useMemo(() => {
    const seen = new Set<string>();
    return (data?.pages ?? []).flatMap((p) => p.threads).filter((t) => !seen.has(`${t.user} ${t.id}`) && seen.add(`${t.user} ${t.id}`));
  }, [data]);
  const wanted = more?.['q'] ?? '';
  const shown = useMemo(() => fitting(all, wanted), [all, wanted]);
  useCommands([{ id: 'allthreads.curl', title: 'Copy as curl: the threads of all users', group: 'Operate', run: () => copy(actions.threads('', 50, '*')) }]);
  if (isPending) return <div className="operate-body" aria-busy="true"><Skeleton lines={8} /></div>;
  if (!data) return <Unread what="The list of all threads" of="tenant" error={error} onRetry={() => void refetch()} />;
  return (
    <div className="operate-body">
      <div className="operate-inner">
        <p className="operate-note"><InfoIcon /><span>Threads of all users{auth === 'key' && ' of your tenant'}. You can read them and change nothing; whatever you open is written to the server’s audit log.</span></p>
        <div className="operate-bar">
          <label className="operate-search"><SearchIcon /><input type="search" aria-label="Search threads of all users" placeholder="Title, user, agent, state or error code" value={wanted} onChange={(e) => router.change({ more: e.target.value ? { q: e.target.value } : undefined }, { replace: true })} /></label>
          <Button onClick={() => void refetch()}>Refresh</Button>
          <IconButton label="Copy as curl" onClick={() => copy(actions.threads('', 50, '*'))}><TerminalIcon /></IconButton>
        </div>
        <p className="sr" role="status">{plural(shown.length, 'thread')}</p>
        {shown.length === 0 ? <p className="operate-none">{wanted ? `No thread of the ${all.length} that are loaded matches.` : 'Nobody has begun a thread yet.'}</p> : (
          <div className="operate-scroll" tabIndex={0} role="region" aria-label="Threads of all users">
            <table className="operate-table operate-all">
              <thead><tr><th scope="col">Thread</th><th scope="col">User</th><th scope="col" className="operate-wide">Agent</th><th scope="col">Status</th><th scope="col" className="operate-end">Active</th></tr></thead>
              <tbody>{shown.map((t) => <Row key={`${t.user} ${t.id}`} thread={t} />)}</tbody>
            </table>
          </div>
        )}
        {hasNextPage && <div><Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>Older threads</Button></div>}
      </div>
    </div>
  );
}
