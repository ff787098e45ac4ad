// A call of a tool as a card: what it is about in one line, all of it when it is opened.
import { useQuery } from '@tanstack/react-query';
import { memo } from 'react';
import { useQueries } from '../../app/data.tsx';
import type { CallItem, CallStatus } from '../../log/view.ts';
import { Badge } from '../../ui/Badge.tsx';
import { CopyButton } from '../../ui/CopyButton.tsx';
import { CheckIcon, ChevronRightIcon, ClockIcon, CloseIcon, ToolIcon } from '../../ui/icons.tsx';
import { effectOf } from '../../ui/effect.tsx';
import { JsonTree } from '../../ui/JsonTree.tsx';
import { Spinner } from '../../ui/Spinner.tsx';
import { Duration } from '../../ui/Time.tsx';
import { useRows } from '../context.ts';
import { brief, briefArguments, pretty, treeOf } from '../format.ts';
import { Media } from './Media.tsx';
import { RecordsButton } from './RecordsButton.tsx';
import { VersionPicker } from './VersionPicker.tsx';

const words: Record<CallStatus, string> = { pending: 'Preparing', running: 'Running', waiting: 'Waiting', done: 'Done', failed: 'Failed', none: 'No result' };

const isWaiting = (status: CallStatus): boolean => status === 'pending' || status === 'running';

function StatusSign({ item }: { item: CallItem }) {
  if (isWaiting(item.status)) return <Spinner />;
  if (item.status === 'done') return <CheckIcon />;
  if (item.status === 'waiting') return <ClockIcon />;
  return item.status === 'failed' ? <CloseIcon /> : <ToolIcon />;
}

function statusText(item: CallItem): string {
  if (item.status === 'failed') return item.notRun ? 'Not run' : item.code === 'outcome_unknown' ? 'Outcome unknown' : 'Failed';
  return words[item.status];
}

function Section({ title, text, children }: { title: string; text: string; children?: React.ReactNode }) {
  const tree = treeOf(text);
  return (
    <section className="conversation-call-part" aria-label={title}>
      <div className="conversation-call-head"><h2>{title}</h2>{text && <CopyButton text={() => pretty(text)} label={`Copy ${title.toLowerCase()}`} />}</div>
      {children}
      {tree !== undefined ? <JsonTree value={tree} label={title} depth={2} /> : text && <pre tabIndex={0} role="group" aria-label={title}>{pretty(text)}</pre>}
    </section>
  );
}

function Facts({ item }: { item: CallItem }) {
  const { thread } = useRows();
  const known = item.effect !== undefined && item.idempotencyKey !== undefined;
  const { data } = useQuery({ ...useQueries().calls(thread, item.runId), enabled: !known && item.runId !== '', retry: false, staleTime: 10_000 });
  const found = data?.calls.find((c) => c.toolCallId === item.id);
  const effect = item.effect ?? found?.effect;
  const key = item.idempotencyKey ?? found?.key;
  const attempts = item.attempts ?? found?.attempts;
  const facts = [
    effect && { name: 'Effect', value: <>{effect}<span className="soft"> · {effectOf(effect).about}</span></> },
    attempts !== undefined && { name: 'Attempts', value: <span className="num">{attempts}</span> },
    key && { name: 'Key', value: <span className="row"><code className="truncate">{key}</code><CopyButton text={key} label="Copy the idempotency key" /></span> },
    found?.process && { name: 'Process', value: <code>{found.process}</code> },
    item.code && { name: 'Code', value: <code>{item.code}</code> },
    { name: 'Call', value: <code className="truncate">{item.id}</code> },
  ].filter((f) => typeof f === 'object');
  return (
    <div className="conversation-call-facts">
      <dl>{facts.map((f) => <div key={f.name}><dt>{f.name}</dt><dd>{f.value}</dd></div>)}</dl>
      <RecordsButton item={item} />
    </div>
  );
}

export const CallRow = memo(function CallRow({ item }: { item: CallItem }) {
  const { isOpen, setOpen } = useRows();
  const open = isOpen(item.key) ?? false;
  const about = item.status === 'done' || item.status === 'failed' ? briefArguments(item.args) || brief(item.result) : briefArguments(item.args);
  return (
    <div className="conversation-call-row">
      <details className="conversation-call" data-status={item.status} open={open} onToggle={(e) => setOpen(item.key, e.currentTarget.open)}>
        <summary>
          <span className="conversation-call-sign"><StatusSign item={item} /></span>
          <code className="conversation-call-name">{item.name}</code>
          <span className="conversation-call-about truncate">{about}</span>
          {item.edited && <Badge title="A person has changed the arguments before the call was made.">edited</Badge>}
          {item.imported && <Badge title="A client brought this result; this server has not produced it.">imported</Badge>}
          <span className="conversation-call-status">
            {statusText(item)}
            {item.at !== undefined && (isWaiting(item.status) ? item.status === 'running' && <> · <Duration since={item.at} /></> : item.end !== undefined && item.end >= item.at && <> · <Duration ms={item.end - item.at} /></>)}
          </span>
          <ChevronRightIcon />
        </summary>
        {open && (
          <div className="conversation-call-body">
            <Section title="Arguments" text={item.args} />
            {(item.result || item.parts.length > 0) && <Section title={item.status === 'failed' ? 'Error' : 'Result'} text={item.result}>{item.parts.length > 0 && <Media parts={item.parts} from="in the result" />}</Section>}
            <Facts item={item} />
          </div>
        )}
      </details>
      <VersionPicker of={item} />
    </div>
  );
});
