import { memo } from 'react';
import type { ReasoningItem } from '../../log/view.ts';
import { BrainIcon, ChevronRightIcon } from '../../ui/icons.tsx';
import { Duration } from '../../ui/Time.tsx';
import { duration } from '../../ui/time.ts';
import { useRows } from '../context.ts';
import { SeamedText } from '../../durable/Seam.tsx';
import { RecordsButton } from './RecordsButton.tsx';
import { VersionPicker } from './VersionPicker.tsx';

function Title({ item }: { item: ReasoningItem }) {
  if (item.hidden) return <>Thought, hidden by the provider</>;
  if (item.failed) return <>Thought, until the run failed</>;
  if (item.open) return <>Thinking{item.at !== undefined && <> for <Duration since={item.at} /></>}…</>;
  return <>{item.at !== undefined && item.end !== undefined && item.end > item.at ? `Thought for ${duration(item.end - item.at)}` : 'Thought'}</>;
}

/** The model's thoughts before it said or did something. */
export const ReasoningRow = memo(function ReasoningRow({ item }: { item: ReasoningItem }) {
  const { isOpen, setOpen } = useRows();
  if (item.hidden || (!item.text && !item.open)) {
    return <div className="conversation-thought"><span className="conversation-thought-title"><BrainIcon /><Title item={{ ...item, hidden: true }} /></span><VersionPicker of={item} /></div>;
  }
  const open = isOpen(item.key) ?? false;
  return (
    <div className="conversation-thought">
      <details open={open} onToggle={(e) => setOpen(item.key, e.currentTarget.open)}>
        <summary className="conversation-thought-title" data-open={item.open || undefined}><BrainIcon /><Title item={item} /><ChevronRightIcon /></summary>
        {open && (
          <div className="conversation-thought-body">
            <div className="conversation-plain">{item.seams.length === 0 ? item.text : <SeamedText text={item.text} marks={item.seams} />}</div>
            <RecordsButton item={item} />
          </div>
        )}
      </details>
      <VersionPicker of={item} />
    </div>
  );
});
