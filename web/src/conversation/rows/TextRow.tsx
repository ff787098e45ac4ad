// The texts of a conversation: by a person, by the assistant, or by others.
import { memo, useRef, useState, type KeyboardEvent } from 'react';
import type { TextItem } from '../../log/view.ts';
import { failureOf } from '../../ui/ErrorCard.tsx';
import { Button, IconButton } from '../../ui/Button.tsx';
import { CopyButton } from '../../ui/CopyButton.tsx';
import { EditIcon, RetryIcon } from '../../ui/icons.tsx';
import { AnswerText } from '../../durable/Seam.tsx';
import { useRows } from '../context.ts';
import { Media } from './Media.tsx';
import { RecordsButton } from './RecordsButton.tsx';
import { VersionPicker } from './VersionPicker.tsx';
import { useWholeSentences } from './sentences.ts';

function Editor({ item, onDone }: { item: TextItem; onDone: () => void }) {
  const { edit } = useRows();
  const [text, setText] = useState(item.text);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const save = async () => {
    if (!text.trim() || busy) return;
    setBusy(true);
    try {
      await edit(item, text);
      onDone();
    } catch (err) {
      setProblem(failureOf(err).message);
      setBusy(false);
    }
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing) return;
    if (e.key === 'Escape') {
      e.preventDefault();
      onDone();
    } else if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault();
      void save();
    }
  };
  return (
    <div className="conversation-editor">
      <textarea className="input textarea" aria-label="Your message" autoFocus onFocus={(e) => e.currentTarget.setSelectionRange(text.length, text.length)} value={text} onChange={(e) => setText(e.target.value)} onKeyDown={onKeyDown} />
      {problem && <p className="field-error" role="alert">{problem}</p>}
      <div className="row conversation-editor-actions">
        <span className="grow small soft">The messages after it are kept as another version.</span>
        <Button size="small" onClick={onDone}>Cancel</Button>
        <Button size="small" kind="primary" busy={busy} disabled={!text.trim()} onClick={() => void save()}>Send</Button>
      </div>
    </div>
  );
}

function UserRow({ item }: { item: TextItem }) {
  const { readOnly, busy } = useRows();
  const [editing, setEditing] = useState(false);
  return (
    <article className="conversation-user" aria-label="You">
      {editing ? <Editor item={item} onDone={() => setEditing(false)} /> : (
        <div className="conversation-bubble">
          {item.text && <p className="conversation-plain">{item.text}</p>}
          {item.parts.length > 0 && <Media parts={item.parts} />}
        </div>
      )}
      {!editing && (
        <div className="conversation-actions">
          <VersionPicker of={item} />
          {item.text && <CopyButton text={item.text} label="Copy message" />}
          {!readOnly && !busy && item.parts.length === 0 && <IconButton size="small" label="Edit" onClick={() => setEditing(true)}><EditIcon /></IconButton>}
          <RecordsButton item={item} />
        </div>
      )}
    </article>
  );
}

function AssistantRow({ item, passing }: { item: TextItem; passing: boolean }) {
  const { readOnly, busy, lastAnswer, regenerate } = useRows();
  const body = useRef<HTMLDivElement>(null);
  const shown = useWholeSentences(item.text, item.open);
  // An answer may be nothing but calls or an image, which have rows of their own.
  if (!item.open && !item.text && item.parts.length === 0) return null;
  return (
    <article className="conversation-answer" aria-label="Assistant" data-open={item.open || undefined} data-passing={passing || undefined} data-failed={item.failed}>
      <div ref={body} className="conversation-body">
        <AnswerText item={item} text={shown} />
      </div>
      {item.parts.length > 0 && <Media parts={item.parts} />}
      {!item.open && (
        <div className="conversation-actions">
          <VersionPicker of={item} />
          <CopyButton text={item.text} label="Copy answer" />
          {!readOnly && !busy && item.key === lastAnswer && <IconButton size="small" label="Answer again" onClick={() => regenerate(item)}><RetryIcon /></IconButton>}
          <RecordsButton item={item} />
          {item.failed && <span className="small conversation-broken" title="The run failed in the middle of this answer. It stays here for you; the model is not shown it.">not finished: the run failed here</span>}
          {item.imported && <span className="small faint" title="A client brought this text; this server has not produced it.">imported</span>}
        </div>
      )}
    </article>
  );
}

export const TextRow = memo(function TextRow({ item, passing = false }: { item: TextItem; passing?: boolean }) {
  if (item.role === 'user') return <UserRow item={item} />;
  if (item.role === 'assistant') return <AssistantRow item={item} passing={passing} />;
  return (
    <article className="conversation-instruction" aria-label={item.role}>
      <p className="small faint">{item.role === 'system' ? 'Instructions' : item.role}</p>
      <p className="conversation-plain">{item.text}</p>
    </article>
  );
});
