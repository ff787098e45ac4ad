// The list of threads: the last active first, of which only what is seen is in the page.
import { useInfiniteQuery } from '@tanstack/react-query';
import { memo, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import type { ThreadInfo } from '../api/types.ts';
import { useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useLeaving, useQueries } from '../app/data.tsx';
import { formatPlace } from '../app/place.ts';
import { useSides } from '../app/sides.tsx';
import { useStore } from '../app/store.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { CloseIcon, EditIcon, EyeIcon, MoreIcon, SearchIcon, TrashIcon, UploadIcon } from '../ui/icons.tsx';
import { Menu, MenuCheck, MenuItem, MenuSeparator } from '../ui/Menu.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { StatusDot } from '../ui/StatusDot.tsx';
import { Time } from '../ui/Time.tsx';
import { VirtualList, type VirtualListHandle } from '../ui/VirtualList.tsx';
import { matching, nameOf, standingOf } from './standing.ts';
import './Threads.css';
import { useThreadActions, type ThreadActions } from './useThreadActions.ts';

function Rename({ thread, onEnd }: { thread: ThreadInfo; onEnd: (title?: string) => void }) {
  const [text, setText] = useState(nameOf(thread));
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing || (e.key !== 'Enter' && e.key !== 'Escape')) return;
    e.preventDefault();
    e.stopPropagation();
    onEnd(e.key === 'Enter' ? text.trim() : undefined);
  };
  return <input className="input threads-rename" aria-label="Title" autoFocus value={text} maxLength={200} onFocus={(e) => e.currentTarget.select()} onChange={(e) => setText(e.target.value)} onKeyDown={onKeyDown} onBlur={() => onEnd(text.trim())} />;
}

interface RowProps {
  thread: ThreadInfo;
  current: boolean;
  several: boolean;
  does: ThreadActions;
}

const ThreadRow = memo(function ThreadRow({ thread, current, several, does }: RowProps) {
  const { user } = usePlace();
  const [renaming, setRenaming] = useState(false);
  const { tone, text } = standingOf(thread);
  const name = nameOf(thread);
  if (renaming) {
    return <Rename thread={thread} onEnd={(title) => { setRenaming(false); if (title !== undefined && title !== name) does.rename(thread.id, title); }} />;
  }
  return (
    <div className="threads-row" data-hidden={thread.hidden || undefined}>
      <a className="threads-link" href={formatPlace({ page: 'thread', thread: thread.id, user })} aria-current={current ? 'page' : undefined} title={thread.status === 'unreadable' ? thread.message : undefined}>
        <span className="threads-name truncate">{name}</span>
        <span className="threads-about">
          <StatusDot tone={tone} />
          <span className="truncate">{text}{several && ` · ${thread.agent}`}{thread.hidden && ' · hidden'}</span>
          {Number.isNaN(Date.parse(thread.updatedAt)) ? null : <Time at={thread.updatedAt} />}
        </span>
      </a>
      {user === undefined && (
        <Menu align="end" trigger={<IconButton size="small" className="threads-more" label={`More about ${name}`}><MoreIcon /></IconButton>}>
          {thread.status !== 'unreadable' && <MenuItem icon={<EditIcon />} onSelect={() => setRenaming(true)}>Rename</MenuItem>}
          {thread.status !== 'unreadable' && <MenuItem icon={<EyeIcon />} onSelect={() => does.hide(thread.id, !thread.hidden)}>{thread.hidden ? 'Show in the list' : 'Hide'}</MenuItem>}
          <MenuSeparator />
          <MenuItem icon={<TrashIcon />} danger onSelect={() => does.remove(thread.id, name)}>Delete</MenuItem>
        </Menu>
      )}
    </div>
  );
});

function useThreads(hidden: boolean, wanted: string) {
  const query = useInfiniteQuery(useQueries().threads());
  const leaving = useStore(useLeaving());
  const all = useMemo(() => {
    const seen = new Set<string>();
    // A thread that moves between two pages is in both.
    return (query.data?.pages ?? []).flatMap((p) => p.threads).filter((t) => !seen.has(t.id) && seen.add(t.id) && !leaving.has(t.id));
  }, [query.data, leaving]);
  const shown = useMemo(() => matching(all.filter((t) => hidden || !t.hidden), wanted), [all, hidden, wanted]);
  return { query, all, shown };
}

/** The list of threads. */
export function Threads() {
  const place = usePlace();
  const { router, layer } = useStudio();
  const { show } = useSides();
  const [wanted, setWanted] = useState('');
  const [hidden, setHidden] = useState(false);
  const [active, setActive] = useState(-1);
  const search = useRef<HTMLInputElement>(null);
  const list = useRef<VirtualListHandle>(null);
  const does = useStable(useThreadActions());
  const { query, all, shown } = useThreads(hidden, wanted);
  const several = useMemo(() => new Set(all.map((t) => t.agent)).size > 1, [all]);
  useCommands([
    { id: 'threads.search', title: 'Search threads', group: 'Go to', keys: '/', run: () => { show('threads'); requestAnimationFrame(() => search.current?.focus()); } },
    { id: 'threads.hidden', title: hidden ? 'Leave out hidden threads' : 'List hidden threads too', group: 'Page', run: () => setHidden(!hidden) },
    ...shown.slice(0, 20).map((t) => ({ id: `threads.open.${t.id}`, title: nameOf(t), group: 'Thread', words: `${t.agent} ${standingOf(t).text}`, run: () => router.go({ page: 'thread', thread: t.id }) })),
  ]);
  const open = (at: number) => {
    const thread = shown[at];
    if (thread) router.go({ page: 'thread', thread: thread.id, ...(place.user !== undefined && { user: place.user }) });
  };
  const onSearchKey = (e: KeyboardEvent) => {
    if (e.key === 'Escape' && wanted) {
      e.preventDefault();
      setWanted('');
    } else if (e.key === 'Enter' && shown.length > 0) {
      open(0);
    } else if (e.key === 'ArrowDown') {
      e.preventDefault();
      list.current?.element?.querySelector<HTMLElement>('.threads-link')?.focus();
    }
  };
  const more = query.hasNextPage && !query.isFetchingNextPage;
  return (
    <div className="threads">
      <div className="threads-search">
        <SearchIcon />
        <input ref={search} type="search" aria-label="Search threads" placeholder="Search" value={wanted} onChange={(e) => setWanted(e.target.value)} onKeyDown={onSearchKey} />
        {wanted && <IconButton size="small" label="Clear the search" onClick={() => { setWanted(''); search.current?.focus(); }}><CloseIcon /></IconButton>}
        <Menu align="end" trigger={<IconButton size="small" label="List"><MoreIcon /></IconButton>}>
          <MenuCheck checked={hidden} onChange={setHidden}>Hidden threads too</MenuCheck>
          <MenuSeparator />
          <MenuItem icon={<UploadIcon />} onSelect={() => layer.set('import')}>Import a thread</MenuItem>
        </Menu>
      </div>
      {query.isError && all.length === 0 && <div className="threads-failed"><ErrorCard title="The threads cannot be listed" error={failureOf(query.error)} onRetry={() => void query.refetch()} /></div>}
      {query.isPending && <div className="threads-failed"><Skeleton lines={6} /></div>}
      {query.isSuccess && shown.length === 0 && (wanted
        ? <EmptyState title="No thread matches" actions={query.hasNextPage && <Button size="small" onClick={() => void query.fetchNextPage()}>Search older ones too</Button>}>The search looks at titles, agents and how threads stand.</EmptyState>
        : <EmptyState title={all.length > 0 ? 'All threads are hidden' : 'No threads yet'}>{all.length > 0 ? 'The menu beside the search lists them.' : 'Your message starts one.'}</EmptyState>)}
      {shown.length > 0 && (
        <VirtualList
          handle={list} className="threads-list" label="Threads" count={shown.length} keyOf={(i) => shown[i]?.id ?? i} estimate={50} active={active >= 0 ? active : undefined} onActive={setActive} onOpen={open}
          onAtEnd={(atEnd) => { if (atEnd && more) void query.fetchNextPage(); }}
        >
          {(i) => { const t = shown[i]; return t && <ThreadRow thread={t} current={place.page === 'thread' && t.id === place.thread} several={several} does={does} />; }}
        </VirtualList>
      )}
    </div>
  );
}

/** The same functions as long as the component lives, each of which does what the newest would. */
function useStable(now: ThreadActions): ThreadActions {
  const latest = useRef(now);
  latest.current = now;
  return useMemo(() => ({
    rename: (id, title) => latest.current.rename(id, title),
    hide: (id, hidden) => latest.current.hide(id, hidden),
    remove: (id, name) => latest.current.remove(id, name),
  }), []);
}
