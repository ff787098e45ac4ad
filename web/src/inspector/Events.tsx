// The records of a thread: grouped by what they are about or one by one, filtered, searched,
// followed. One is selected, and shown whole under the list.
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { useCommands, usePlace, useStudio } from '../app/context.tsx';
import { useLog, useSnapshot, useThread } from '../log/hooks.tsx';
import type { EntryKind } from '../log/group.ts';
import type { Log } from '../log/record.ts';
import type { Snapshot } from '../log/store.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { EmptyState } from '../ui/EmptyState.tsx';
import { ErrorCard, failureOf } from '../ui/ErrorCard.tsx';
import { ChevronDownIcon, CloseIcon, FilterIcon, HistoryIcon, SearchIcon } from '../ui/icons.tsx';
import { Menu, MenuCheck, MenuItem, MenuSeparator } from '../ui/Menu.tsx';
import { Segments } from '../ui/Segments.tsx';
import { Skeleton } from '../ui/Spinner.tsx';
import { plural } from '../ui/time.ts';
import { VirtualList, type VirtualListHandle } from '../ui/VirtualList.tsx';
import { usePosition } from './position.ts';
import { EventRowView } from './EventRow.tsx';
import { RecordDetail } from './RecordDetail.tsx';
import { countsOf, families, firstNumber, rowOf, rowsOf, type EventRow } from './rows.ts';
import { useSearch } from './search.ts';
import { useSelection } from './selection.ts';

const standingOf = ({ standing, error, earlier }: Snapshot) => ({ standing, error, earlier: earlier.length });
const sameStanding = (a: ReturnType<typeof standingOf>, b: ReturnType<typeof standingOf>) => a.standing === b.standing && a.error === b.error && a.earlier === b.earlier;

/** The part of the list that the address names. */
function useChoices() {
  const { router } = useStudio();
  const { more = {} } = usePlace();
  const put = useCallback((part: Record<string, string | undefined>) => {
    const to = Object.fromEntries(Object.entries({ ...router.get().more, ...part }).filter((each): each is [string, string] => !!each[1]));
    router.change({ more: Object.keys(to).length > 0 ? to : undefined }, { replace: true });
  }, [router]);
  const named = more['families'];
  const kinds = useMemo(() => (named ? new Set(named.split(',') as EntryKind[]) : undefined), [named]);
  return {
    grouped: more['list'] !== 'flat', kinds, find: more['find'] ?? '',
    setGrouped: (grouped: boolean) => put({ list: grouped ? undefined : 'flat' }),
    setKinds: (next: ReadonlySet<EntryKind> | undefined) => put({ families: next && next.size > 0 ? [...next].join(',') : undefined }),
    setFind: (find: string) => put({ find: find || undefined }),
  };
}

type Choices = ReturnType<typeof useChoices>;

/** The families that are shown; without any choice, all of them. */
function Families({ log, kinds, setKinds }: { log: Log } & Pick<Choices, 'kinds' | 'setKinds'>) {
  const counts = useMemo(() => countsOf(log), [log]);
  const there = families.filter(([kind]) => counts.has(kind) || kinds?.has(kind));
  const toggle = (kind: EntryKind, shown: boolean) => {
    const now = new Set(kinds ?? there.map(([each]) => each));
    if (shown) now.add(kind);
    else now.delete(kind);
    setKinds(there.every(([each]) => now.has(each)) ? undefined : now);
  };
  return (
    <Menu align="end" trigger={<IconButton label={kinds ? `Families: ${kinds.size} of ${there.length}` : 'Filter by family'} aria-pressed={kinds !== undefined}><FilterIcon /></IconButton>}>
      {there.map(([kind, name]) => (
        <MenuCheck key={kind} checked={kinds === undefined || kinds.has(kind)} onChange={(shown) => toggle(kind, shown)}>
          <span className="grow">{name}</span><span className="faint num small inspector-menu-count">{(counts.get(kind) ?? 0).toLocaleString('en')}</span>
        </MenuCheck>
      ))}
      <MenuSeparator />
      <MenuItem onSelect={() => setKinds(undefined)} disabled={kinds === undefined}>Show all families</MenuItem>
    </Menu>
  );
}

function Bar({ log, choices, input, count, busy }: { log: Log; choices: Choices; input: React.RefObject<HTMLInputElement | null>; count: number; busy: boolean }) {
  return (
    <div className="inspector-bar">
      <div className="inspector-search">
        <SearchIcon />
        <input
          ref={input} type="search" className="input" aria-label="Search in the records" placeholder="Search" value={choices.find} spellCheck={false}
          onChange={(e) => choices.setFind(e.target.value)} onKeyDown={(e) => { if (e.key === 'Escape' && choices.find) { e.stopPropagation(); choices.setFind(''); } }}
        />
        {choices.find && <span className="inspector-search-count num" role="status"><span aria-hidden="true">{count.toLocaleString('en')}{busy && '…'}</span><span className="sr">{busy ? 'Searching' : `${plural(count, 'record')} found`}</span></span>}
        {choices.find && <IconButton size="small" label="Clear the search" onClick={() => choices.setFind('')}><CloseIcon /></IconButton>}
      </div>
      <Segments label="How records are listed" value={choices.grouped ? 'grouped' : 'flat'} options={[['grouped', 'Grouped'], ['flat', 'Flat']]} onChange={(value) => choices.setGrouped(value === 'grouped')} />
      <Families log={log} kinds={choices.kinds} setKinds={choices.setKinds} />
    </div>
  );
}

/** The rows that are open or closed against the rule; rows know what the rule is. */
function useToggled() {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback((id: string) => setToggled((now) => {
    const next = new Set(now);
    if (!next.delete(id)) next.add(id);
    return next;
  }), []);
  return { toggled, toggle };
}

/** The first record of what a row shows. */
const firstOf = (row: EventRow | undefined): number => {
  if (row?.kind === 'record') return row.index;
  return row?.kind === 'entry' ? (row.entry.records[0] ?? -1) : -1;
};

/** Whether a row shows a record: as one of its own, or among those that it holds while it is closed. */
const holds = (row: EventRow, index: number): boolean => (row.kind === 'record' ? row.index === index : row.kind === 'entry' && !row.open && row.entry.records.includes(index));

const folds = (row: EventRow): boolean => row.kind === 'run' || row.kind === 'iteration' || (row.kind === 'entry' && row.entry.records.length > 1);
const isOpen = (row: EventRow): boolean => row.kind !== 'record' && row.open;

export function Events() {
  const now = useLog();
  // Records that come in quickly are listed when there is time; the conversation goes first.
  const log = useDeferredValue(now);
  const { standing, error, earlier } = useSnapshot(standingOf, sameStanding);
  const choices = useChoices();
  const store = useThread();
  const searched = useSearch(log, choices.find);
  const { toggled, toggle } = useToggled();
  const selection = useSelection(log);
  const rows = useMemo(() => rowsOf(log, { grouped: choices.grouped, kinds: choices.kinds, found: searched.found, toggled }), [log, choices.grouped, choices.kinds, searched.found, toggled]);
  const selected = useMemo(() => rowOf(rows, selection.index), [rows, selection.index]);
  // Headings can have the keyboard, but are no records.
  const [heading, setHeading] = useState<string>();
  const headingAt = useMemo(() => (heading === undefined ? -1 : rows.findIndex((row) => row.id === heading)), [rows, heading]);
  const active = headingAt >= 0 ? headingAt : selected >= 0 ? selected : undefined;
  const handle = useRef<VirtualListHandle>(null);
  const input = useRef<HTMLInputElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(selection.ref === undefined);
  const { position, now: atEnd, playing } = usePosition(log);
  const activate = (at: number) => {
    const row = rows[at];
    const record = firstOf(row);
    setHeading(record < 0 ? row?.id : undefined);
    if (record < 0) return;
    setFollow(false);
    selection.select(record);
  };
  const setFollowing = (on: boolean) => {
    setFollow(on);
    if (!on) return;
    setHeading(undefined);
    handle.current?.end();
  };
  const inside = () => panel.current?.contains(document.activeElement) ?? false;
  const step = (by: number) => activate(Math.max(0, Math.min(rows.length - 1, (active ?? (by > 0 ? -1 : rows.length)) + by)));
  useCommands([
    { id: 'events.follow', title: 'Follow new events', group: 'Inspector', keys: 'f', words: 'tail live', run: () => setFollowing(!follow) },
    { id: 'events.search', title: 'Search in the records', group: 'Inspector', keys: 'Mod+F', words: 'find filter', when: inside, run: () => input.current?.focus() },
    { id: 'events.next', title: 'Next event', group: 'Inspector', keys: 'j', when: inside, hidden: true, run: () => step(1) },
    { id: 'events.previous', title: 'Previous event', group: 'Inspector', keys: 'k', when: inside, hidden: true, run: () => step(-1) },
    { id: 'events.grouped', title: choices.grouped ? 'List records one by one' : 'Group records', group: 'Inspector', words: 'flat', run: () => choices.setGrouped(!choices.grouped) },
  ]);
  const onKeyDown = (e: KeyboardEvent) => {
    const row = active === undefined ? undefined : rows[active];
    if (!row || (e.key !== 'ArrowRight' && e.key !== 'ArrowLeft') || !(e.target as Element).matches('.virtual, [data-index]')) return;
    e.preventDefault();
    if (folds(row) && isOpen(row) === (e.key === 'ArrowLeft')) toggle(row.id);
    else if (e.key === 'ArrowLeft' && row.kind === 'record' && row.inside) {
      const parent = rows.slice(0, active).findLast((each) => each.kind === 'entry');
      if (parent) { toggle(parent.id); setHeading(undefined); }
    }
  };
  useEffect(() => {
    if (follow) handle.current?.end();
  }, [follow, rows.length]);
  useEffect(() => {
    if (!playing) return;
    setFollow(false);
    const at = rowOf(rows, position - 1);
    if (at >= 0) handle.current?.show(at);
  }, [playing, position, rows]);
  if (firstNumber(log) === 0) return <NoEvents standing={standing} error={error} onRetry={() => store.refresh()} />;
  return (
    <div className="inspector-events" ref={panel} onKeyDown={onKeyDown}>
      <Bar log={log} choices={choices} input={input} count={searched.count} busy={searched.busy} />
      <div className="inspector-list">
        {rows.length === 0
          ? <EmptyState title={searched.busy ? 'Searching…' : 'No record matches'} actions={!searched.busy && <Button size="small" onClick={() => { choices.setFind(''); choices.setKinds(undefined); }}>Show all records</Button>}>{searched.busy ? '' : `None of ${plural(log.length, 'record')} has it in its JSON.`}</EmptyState>
          : (
            <VirtualList
              label="Records" role="log" count={rows.length} keyOf={(at) => rows[at]?.id ?? at} estimate={28} overscan={12} follow={follow} handle={handle} className="inspector-rows"
              active={active} onActive={activate} onOpen={(at) => { const row = rows[at]; if (row && folds(row)) toggle(row.id); }}
              onAtEnd={(end) => { if (!end) setFollow(false); else if (standing === 'live') setFollow(true); }}
            >
              {(at) => { const row = rows[at]; return row && <EventRowView log={log} row={row} later={!atEnd && firstOf(row) >= position} here={!atEnd && holds(row, position - 1)} onToggle={toggle} />; }}
            </VirtualList>
          )}
        {!follow && standing === 'live' && <Button size="small" className="inspector-latest" icon={<ChevronDownIcon />} onClick={() => setFollowing(true)}>Follow</Button>}
      </div>
      {earlier > 0 && <div className="inspector-earlier"><Button size="small" kind="quiet" icon={<HistoryIcon />} onClick={() => void store.loadEarlier().catch(() => {})}>Load the run before ({earlier})</Button></div>}
      {selection.index >= 0 && <RecordDetail log={log} index={selection.index} onGo={(to) => { setHeading(undefined); selection.select(to); }} onClose={selection.clear} />}
    </div>
  );
}

function NoEvents({ standing, error, onRetry }: Pick<Snapshot, 'standing' | 'error'> & { onRetry: () => void }) {
  if (standing === 'gone' && error) return <div className="inspector-pad"><ErrorCard title="The records cannot be shown" error={failureOf(error)} onRetry={onRetry} /></div>;
  if (standing === 'loading' || standing === 'reconnecting') return <div className="inspector-pad"><Skeleton lines={8} /></div>;
  return <EmptyState title="No records yet">Every event of a run is stored before anybody sees it, and is listed here: what the model says, what tools do, how the state changes.</EmptyState>;
}
