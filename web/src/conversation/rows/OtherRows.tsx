// Remarks, steps, subagents, and questions that were answered.
import { memo, useCallback } from 'react';
import { useView } from '../../log/hooks.tsx';
import type { AgentItem, CallItem, NoteItem, QuestionItem, StepItem, View } from '../../log/view.ts';
import { Badge } from '../../ui/Badge.tsx';
import { CheckIcon, InfoIcon, QuestionIcon, WarningIcon } from '../../ui/icons.tsx';
import { spaced } from '../../ui/schema.ts';
import { Spinner } from '../../ui/Spinner.tsx';
import { StatusDot, type Tone } from '../../ui/StatusDot.tsx';
import { duration } from '../../ui/time.ts';
import { useRows } from '../context.ts';
import { brief } from '../format.ts';
import { RecordsButton } from './RecordsButton.tsx';

export const NoteRow = memo(function NoteRow({ item }: { item: NoteItem }) {
  return (
    <div className="conversation-note" data-tone={item.tone}>
      {item.tone === 'error' ? <WarningIcon /> : <InfoIcon />}
      <div className="grow">
        <p>{item.text}{item.code && <> <code>{item.code}</code></>}</p>
        {item.hint && <details><summary>For developers</summary><p>{item.hint}</p></details>}
      </div>
      <RecordsButton item={item} />
    </div>
  );
});

const elapsed = ({ at, end }: { at?: number; end?: number }): string => (at !== undefined && end !== undefined && end > at ? ` · ${duration(end - at)}` : '');

export const StepRow = memo(function StepRow({ item }: { item: StepItem }) {
  return <p className="conversation-step">{item.open ? <Spinner /> : <CheckIcon />}<span>{spaced(item.name)}<span className="faint">{elapsed(item)}</span></span></p>;
});

const agentTones: Record<AgentItem['status'], [string, Tone]> = { running: ['working', 'active'], waiting: ['waits', 'wait'], done: ['done', 'good'], failed: ['failed', 'bad'], none: ['ended', 'neutral'] };

export const AgentRow = memo(function AgentRow({ item }: { item: AgentItem }) {
  const [word, tone] = agentTones[item.status];
  return (
    <div className="conversation-agent">
      <StatusDot tone={tone} />
      <p className="grow"><strong>{item.name || 'Subagent'}</strong>{item.text && <span className="soft"> {item.text}</span>}</p>
      <span className="small faint">{word}{elapsed(item)}</span>
      <RecordsButton item={item} />
    </div>
  );
});

/** The outcome of a question, as far as its call tells. */
export function outcomeOf(item: QuestionItem, call: CallItem | undefined): { word: string; text: string } {
  if (call === undefined || call.status === 'waiting' || call.status === 'running') return { word: 'answered', text: '' };
  if (item.interrupt.reason === 'tool_call') return { word: call.notRun ? 'not approved' : call.edited ? 'approved, edited' : 'approved', text: '' };
  if (call.status === 'failed') return { word: 'declined', text: '' };
  return { word: 'answered', text: brief(call.result) };
}

/** A question in its place in the conversation. While it is open its form is over the composer. */
export const QuestionRow = memo(function QuestionRow({ item }: { item: QuestionItem }) {
  const { readOnly } = useRows();
  const { toolCallId } = item.interrupt;
  const call = useView(useCallback((view: View) => view.items.find((i): i is CallItem => i.kind === 'call' && i.id === toolCallId), [toolCallId]));
  const { word, text: said } = outcomeOf(item, call);
  return (
    <div className="conversation-question" data-open={item.open || undefined}>
      <QuestionIcon />
      <p className="grow">{item.interrupt.message || 'An answer was needed'}{!item.open && said && <span className="soft"> {said}</span>}</p>
      <Badge tone={item.open ? 'wait' : 'neutral'}>{item.open ? (readOnly ? 'open' : 'answer below') : word}</Badge>
    </div>
  );
});
