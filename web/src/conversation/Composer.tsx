// Where one writes. Enter sends, Shift+Enter breaks the line; while an input method composes,
// Enter belongs to it. A written text is lost neither by an error nor by a reload.
import { useEffect, useImperativeHandle, useRef, useState, type ClipboardEvent, type DragEvent, type FormEvent, type KeyboardEvent, type ReactNode, type Ref } from 'react';
import type { UserMessage } from '../api/actions.ts';
import { Button, IconButton } from '../ui/Button.tsx';
import { AttachIcon, CloseIcon, SendIcon, StopIcon } from '../ui/icons.tsx';
import { bytes } from '../ui/time.ts';
import { attach, contentOf, problemOf, type Accepts, type Attachment, type Limits } from './attachments.ts';
import './Composer.css';

export interface ComposerHandle {
  focus: () => void;
  /** Puts a text in, for examples. */
  write: (text: string) => void;
}

export interface ComposerProps {
  text: string;
  onText: (text: string) => void;
  files: readonly Attachment[];
  onFiles: (files: readonly Attachment[]) => void;
  /** Sends; rejects if the server refuses, and then everything is still there. */
  onSend: (content: UserMessage['content']) => Promise<void>;
  /** A run is under way. */
  busy: boolean;
  onStop: () => void;
  stopping: boolean;
  placeholder: string;
  accepts: Accepts;
  /** How large the body of a request may be. */
  limits?: Limits;
  /** In the bar below the text: the choice of an agent. */
  children?: ReactNode;
  autoFocus?: boolean;
  handle?: Ref<ComposerHandle>;
}

function useAttachments(files: readonly Attachment[], onFiles: (files: readonly Attachment[]) => void, accepts: Accepts, limits?: Limits) {
  // Reading takes its time, and more may be dropped meanwhile.
  const now = useRef(files);
  useEffect(() => {
    now.current = files;
  }, [files]);
  const [problem, setProblem] = useState('');
  const setList = (next: readonly Attachment[]) => {
    now.current = next;
    onFiles(next);
  };
  const add = async (files: readonly File[]) => {
    setProblem('');
    for (const file of files) {
      const wrong = problemOf(file, accepts, now.current, limits);
      if (wrong) {
        setProblem(wrong);
        continue;
      }
      try {
        const read = await attach(file);
        setList([...now.current, read]);
      } catch {
        setProblem(`${file.name} could not be read.`);
      }
    }
  };
  return { setList, problem, setProblem, add, remove: (id: number) => setList(now.current.filter((a) => a.id !== id)) };
}

function Chips({ list, onRemove }: { list: readonly Attachment[]; onRemove: (id: number) => void }) {
  if (list.length === 0) return null;
  return (
    <ul className="composer-chips" aria-label="Attachments">
      {list.map((a) => (
        <li key={a.id} className="composer-chip">
          {a.part.type === 'image' && <img src={`data:${a.part.source.mimeType};base64,${a.part.source.value}`} alt="" />}
          <span className="truncate">{a.name}</span>
          <span className="num faint">{bytes(a.size)}</span>
          <IconButton size="small" label={`Remove ${a.name}`} onClick={() => onRemove(a.id)}><CloseIcon /></IconButton>
        </li>
      ))}
    </ul>
  );
}

export function Composer({ text, onText, files, onFiles, onSend, busy, onStop, stopping, placeholder, accepts, limits, children, autoFocus, handle }: ComposerProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const attachments = useAttachments(files, onFiles, accepts, limits);
  const [over, setOver] = useState(false);
  const [hint, setHint] = useState('');
  useImperativeHandle(handle, () => ({
    focus: () => area.current?.focus(),
    write: (written) => {
      onText(written);
      area.current?.focus();
    },
  }));
  // A first message gives its thread an address, and with it another draft.
  const draft = useRef({ onText, onFiles });
  useEffect(() => {
    draft.current = { onText, onFiles };
  });
  useEffect(() => setHint(''), [busy, text]);
  useEffect(() => {
    if (autoFocus && window.matchMedia('(pointer: fine)').matches) area.current?.focus();
  }, [autoFocus]);
  const empty = text.trim() === '' && files.length === 0;
  const send = async () => {
    if (empty) return;
    if (busy) {
      setHint('It is still at work. Stop it first, or wait: what you wrote stays here.');
      return;
    }
    const [written, attached] = [text, files];
    onText('');
    attachments.setList([]);
    attachments.setProblem('');
    area.current?.focus();
    try {
      await onSend(contentOf(written, attached));
    } catch {
      // The sender says why; here it is as it was.
      draft.current.onText(written);
      draft.current.onFiles(attached);
    }
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key !== 'Enter' || e.shiftKey || e.nativeEvent.isComposing || e.keyCode === 229) return;
    e.preventDefault();
    void send();
  };
  const onPaste = (e: ClipboardEvent) => {
    const pasted = [...e.clipboardData.files];
    if (pasted.length === 0) return;
    e.preventDefault();
    void attachments.add(pasted);
  };
  const onDrop = (e: DragEvent) => {
    setOver(false);
    if (e.dataTransfer.files.length === 0) return;
    e.preventDefault();
    void attachments.add([...e.dataTransfer.files]);
  };
  const hasFiles = (e: DragEvent) => e.dataTransfer.types.includes('Files');
  return (
    <form
      className="composer" data-over={over || undefined} onSubmit={(e: FormEvent) => { e.preventDefault(); void send(); }}
      onDragOver={(e) => { if (hasFiles(e)) { e.preventDefault(); setOver(true); } }} onDragLeave={() => setOver(false)} onDrop={onDrop}
    >
      <Chips list={files} onRemove={attachments.remove} />
      <textarea
        ref={area} className="composer-text" aria-label="Message" rows={Math.min(8, text.split('\n').length)} placeholder={placeholder} value={text} enterKeyHint="send"
        onChange={(e) => onText(e.target.value)} onKeyDown={onKeyDown} onPaste={onPaste}
      />
      {(attachments.problem || hint) && <p className={attachments.problem ? 'field-error composer-said' : 'small soft composer-said'} role="status">{attachments.problem || hint}</p>}
      <div className="composer-bar">
        <input ref={picker} type="file" multiple hidden aria-hidden="true" tabIndex={-1} onChange={(e) => { void attachments.add([...(e.target.files ?? [])]); e.target.value = ''; }} />
        <IconButton label="Attach files" onClick={() => picker.current?.click()}><AttachIcon /></IconButton>
        <div className="composer-about">{children}</div>
        {busy
          ? <Button kind="default" icon={<StopIcon />} busy={stopping} onClick={onStop}>Stop</Button>
          : <IconButton type="submit" kind="primary" label="Send" keys="Enter" disabled={empty}><SendIcon /></IconButton>}
      </div>
    </form>
  );
}
