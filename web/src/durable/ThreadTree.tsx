// The threads that were forked from each other, around the one that is shown.
import { useQuery, useQueries as useMany } from '@tanstack/react-query';
import type { ThreadInfo, ThreadList } from '../api/types.ts';
import { useQueries } from '../app/data.tsx';
import { formatPlace } from '../app/place.ts';
import { BranchIcon } from '../ui/icons.tsx';
import { nameOf, standingOf } from '../threads/standing.ts';
import { StatusDot } from '../ui/StatusDot.tsx';
import { Time } from '../ui/Time.tsx';
import './ThreadTree.css';
import { treeOf } from './tree.ts';

/** The tree, of threads that are known. */
export function ThreadTreeView({ threads, here }: { threads: readonly ThreadInfo[]; here: string }) {
  const rows = treeOf(threads, here);
  if (rows.length < 2) {
    return <p className="durable-tree-none"><BranchIcon /> Nothing was forked from this thread yet. A fork copies its history up to a checkpoint into a new thread; this one is not changed.</p>;
  }
  return (
    <ul className="durable-tree" aria-label="Forks">
      {rows.map(({ thread, depth, here: current, from }) => (
        <li key={thread.id} className="durable-tree-row" style={{ paddingInlineStart: depth * 18 }}>
          <a className="durable-tree-link" href={formatPlace({ page: 'thread', thread: thread.id })} aria-current={current ? 'page' : undefined}>
            {depth > 0 && <span className="durable-tree-bend" aria-hidden="true" />}
            <StatusDot tone={standingOf(thread).tone} label={standingOf(thread).text} />
            <span className="truncate grow">{nameOf(thread)}</span>
            {from && <span className="faint small num">from #{from}</span>}
            <span className="faint small"><Time at={thread.updatedAt} /></span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** Reads the parents of a thread, and what was forked from it and from them. */
function useRelatives(id: string): readonly ThreadInfo[] {
  const queries = useQueries();
  const own = useQuery(queries.thread(id));
  const parent = useQuery({ ...queries.thread(own.data?.parentThreadId ?? ''), enabled: own.data?.parentThreadId !== undefined, retry: false });
  const grand = useQuery({ ...queries.thread(parent.data?.parentThreadId ?? ''), enabled: parent.data?.parentThreadId !== undefined, retry: false });
  const above = [grand.data, parent.data, own.data].filter((thread) => thread !== undefined);
  const children = useMany({ queries: above.map((thread) => queries.children(thread.id)) });
  const all = new Map<string, ThreadInfo>(above.map((thread) => [thread.id, thread]));
  for (const { data } of children) for (const thread of (data as ThreadList | undefined)?.threads ?? []) if (!all.has(thread.id)) all.set(thread.id, thread);
  return [...all.values()];
}

export function ThreadTree({ thread }: { thread: string }) {
  return <ThreadTreeView threads={useRelatives(thread)} here={thread} />;
}
