// One record whole: its JSON, what it changed in the shared state, where it is in the
// conversation, and the thread as it was after it.
import { useMemo, useState } from 'react';
import { useCommands, usePlaceLink, useStudio } from '../app/context.tsx';
import { useToast } from '../app/context.tsx';
import { useSides } from '../app/sides.tsx';
import { useThread } from '../log/hooks.tsx';
import { kindOf } from '../log/group.ts';
import type { Log, LogRecord } from '../log/record.ts';
import { itemOf, reduce } from '../log/reduce.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { copyText } from '../ui/CopyButton.tsx';
import { JsonDiff } from '../ui/Diff.tsx';
import { ChevronDownIcon, ChevronUpIcon, CloseIcon, CopyIcon, EyeIcon, LinkIcon, MoreIcon } from '../ui/icons.tsx';
import { pretty } from '../ui/json.ts';
import { JsonTree } from '../ui/JsonTree.tsx';
import { Menu, MenuItem } from '../ui/Menu.tsx';
import { Segments } from '../ui/Segments.tsx';
import { duration, exactTime } from '../ui/time.ts';
import { listed, sinceBefore } from './rows.ts';

type Shown = 'tree' | 'raw' | 'changes';

/** A record as golden logs have it: the event alone, in one line. */
export const fixture = ({ event }: LogRecord): string => JSON.stringify(event);

/** The records that are about the same thing, as lines. */
function fixtures(log: Log, index: number): string {
  const record = log.at(index) as LogRecord;
  const view = reduce(log);
  const item = itemOf(view, record);
  if (item === undefined || item.first === 0) return fixture(record);
  return log.slice(log.positionOf(item.first) - 1, log.positionOf(item.last)).filter((each) => itemOf(view, each)?.key === item.key).map(fixture).join('\n');
}

function useCopy(): (text: string, said: string) => void {
  const toast = useToast();
  return (text, said) => void copyText(text).then(() => toast({ text: said }), (error: Error) => toast({ text: error.message, tone: 'bad' }));
}

function Changes({ log, index }: { log: Log; index: number }) {
  const before = useMemo(() => reduce(log, index).state, [log, index]);
  const after = useMemo(() => reduce(log, index + 1).state, [log, index]);
  return <JsonDiff before={before ?? null} after={after ?? null} label="Changes of the record in the shared state" />;
}

export function RecordDetail({ log, index, onGo, onClose }: { log: Log; index: number; onGo: (index: number) => void; onClose: () => void }) {
  const record = log.at(index) as LogRecord;
  const { router } = useStudio();
  const { narrow, close } = useSides();
  const link = usePlaceLink();
  const copy = useCopy();
  const { thread } = useThread();
  const [wanted, setWanted] = useState<Shown>('tree');
  const changesState = kindOf(record) === 'state';
  const shown = wanted === 'changes' && !changesState ? 'tree' : wanted;
  const since = sinceBefore(log, index);
  const item = useMemo(() => itemOf(reduce(log), record), [log, record]);
  const showItem = () => {
    if (item === undefined) return;
    const { checkpoint: _, ...more } = router.get().more ?? {};
    router.change({ at: undefined, more: { ...more, item: item.key } });
    if (narrow) close();
  };
  const look = () => router.change({ at: record.cursor });
  const address = () => `${location.href.replace(/#.*/, '')}${link({ tab: 'events', run: record.runId || undefined, at: undefined, more: { record: record.cursor } })}`;
  useCommands([
    { id: 'record.copy', title: 'Copy the record as JSON', group: 'Inspector', run: () => copy(pretty(record.event), 'Copied the record') },
    { id: 'record.look', title: 'Show the thread as it was after the record', group: 'Inspector', words: 'time travel at', when: () => record.cursor !== '', run: look },
  ]);
  return (
    <section className="inspector-detail" aria-label={`Record ${record.number || ''}`}>
      <div className="inspector-detail-head">
        <span className="inspector-detail-title truncate"><span className="num">#{record.number || '–'}</span> <span className="mono">{record.event.type}</span></span>
        <IconButton size="small" label="Record before" disabled={!listed(log, index - 1)} onClick={() => onGo(index - 1)}><ChevronUpIcon /></IconButton>
        <IconButton size="small" label="Record after" disabled={!listed(log, index + 1)} onClick={() => onGo(index + 1)}><ChevronDownIcon /></IconButton>
        <IconButton size="small" label="Copy as JSON" onClick={() => copy(pretty(record.event), 'Copied the record')}><CopyIcon /></IconButton>
        <Menu align="end" trigger={<IconButton size="small" label="More about this record"><MoreIcon /></IconButton>}>
          <MenuItem icon={<CopyIcon />} onSelect={() => copy(fixture(record), 'Copied as a fixture')}>Copy as a fixture</MenuItem>
          {item && <MenuItem icon={<CopyIcon />} onSelect={() => copy(fixtures(log, index), 'Copied as a fixture')}>Copy all records of it as a fixture</MenuItem>}
          <MenuItem icon={<LinkIcon />} disabled={record.cursor === ''} onSelect={() => copy(address(), 'Copied the link')}>Copy a link to it</MenuItem>
        </Menu>
        <IconButton size="small" label="Close the record" onClick={onClose}><CloseIcon /></IconButton>
      </div>
      <p className="inspector-detail-facts num">
        {record.at !== undefined && <span>{exactTime(record.at)}</span>}
        {since !== undefined && <span>+{duration(since)}</span>}
        {record.cursor && <span className="mono">{record.cursor}</span>}
      </p>
      <div className="inspector-detail-actions">
        <Segments label="How the record is shown" value={shown} options={[['tree', 'Tree'], ['raw', 'Raw'], ...(changesState ? [['changes', 'Changes'] as const] : [])]} onChange={setWanted} />
        <span className="grow" />
        {item && <Button size="small" kind="quiet" icon={<LinkIcon />} onClick={showItem}>In the conversation</Button>}
        {record.cursor && <Button size="small" kind="quiet" icon={<EyeIcon />} onClick={look}>As it was here</Button>}
      </div>
      <div className="inspector-detail-body" key={`${thread} ${index}`}>
        {shown === 'tree' && <JsonTree value={record.event} label={`Record ${record.number}`} depth={3} />}
        {shown === 'raw' && <pre className="inspector-raw" tabIndex={0} role="region" aria-label="Raw JSON">{pretty(record.event)}</pre>}
        {shown === 'changes' && <Changes log={log} index={index} />}
      </div>
    </section>
  );
}
