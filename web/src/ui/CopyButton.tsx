import { useEffect, useState } from 'react';
import { IconButton } from './Button.tsx';
import { CheckIcon, CopyIcon } from './icons.tsx';

/** Copies a text. Where the browser does not let pages write to the clipboard, it selects it for the old way. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'sr';
    document.body.append(area);
    const before = document.activeElement;
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    if (before instanceof HTMLElement) before.focus();
    if (!done) throw new Error('The browser does not let this page copy.');
  }
}

/** Copies, and says for a moment that it has. */
export function CopyButton({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return undefined;
    const timer = setTimeout(() => setState('idle'), 1500);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => copyText(typeof text === 'function' ? text() : text).then(() => setState('copied'), () => setState('failed'));
  return (
    <>
      <IconButton size="small" label={label} onClick={() => void copy()}>{state === 'copied' ? <CheckIcon /> : <CopyIcon />}</IconButton>
      <span className="sr" role="status">{state === 'copied' ? 'Copied' : state === 'failed' ? 'The browser does not let this page copy.' : ''}</span>
    </>
  );
}
