import { memo, Suspense } from 'react';
import type { Item } from '../../log/view.ts';
import { later } from '../../ui/later.tsx';
import { PanelBoundary } from '../../ui/PanelBoundary.tsx';
import { Skeleton } from '../../ui/Spinner.tsx';
import { SeamRow } from '../slots.tsx';
import { CallRow } from './CallRow.tsx';
import { AgentRow, NoteRow, QuestionRow, StepRow } from './OtherRows.tsx';
import { ReasoningRow } from './ReasoningRow.tsx';
import { TextRow } from './TextRow.tsx';

const Activity = later(() => import('./Activity.tsx'));

function Shown({ item, passing }: { item: Item; passing: boolean }) {
  switch (item.kind) {
    case 'text': return <TextRow item={item} passing={passing} />;
    case 'reasoning': return <ReasoningRow item={item} />;
    case 'call': return <CallRow item={item} />;
    case 'activity': return <Suspense fallback={<Skeleton />}><Activity item={item} /></Suspense>;
    case 'step': return <StepRow item={item} />;
    case 'agent': return <AgentRow item={item} />;
    case 'note': return <NoteRow item={item} />;
    case 'seam': return <SeamRow item={item} />;
    case 'question': return <QuestionRow item={item} />;
  }
}

/** A row of the conversation; passing is an answer that is only said on the way. One that cannot be shown does not take the others along. */
export const Row = memo(function Row({ item, passing = false }: { item: Item; passing?: boolean }) {
  return <PanelBoundary name="This part of the conversation" of={item.key}><Shown item={item} passing={passing} /></PanelBoundary>;
});
