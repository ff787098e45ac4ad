// The title of a thread, which is renamed in place.
import { useState, type KeyboardEvent } from 'react';
import { Tooltip } from '../ui/Tooltip.tsx';

export interface TitleProps {
  title: string;
  /** Renames; an empty title brings the server's back. Without it, it cannot be renamed now. */
  onRename?: (title: string) => void;
  editing: boolean;
  onEditing: (editing: boolean) => void;
}

export function Title({ title, onRename, editing, onEditing }: TitleProps) {
  const [text, setText] = useState(title);
  const begin = () => {
    setText(title);
    onEditing(true);
  };
  if (!onRename) return <>{title}</>;
  if (!editing) return <Tooltip text="Rename"><button type="button" className="conversation-title" onClick={begin}>{title}</button></Tooltip>;
  const end = (keep: boolean) => {
    onEditing(false);
    if (keep && text.trim() !== title) onRename(text.trim());
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing || (e.key !== 'Enter' && e.key !== 'Escape')) return;
    e.preventDefault(); // elsewhere, Escape stops a run
    end(e.key === 'Enter');
  };
  return <input className="input conversation-title-input" aria-label="Title" autoFocus onFocus={(e) => { setText(title); e.currentTarget.select(); }} value={text} maxLength={200} placeholder="The first message" onChange={(e) => setText(e.target.value)} onBlur={() => end(true)} onKeyDown={onKeyDown} />;
}
