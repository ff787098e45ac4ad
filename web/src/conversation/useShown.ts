// The visible part of the thread: as it is now with what was just sent, or as it was after a record.
import { useMemo } from 'react';
import { useLook } from '../durable/look.ts';
import { useSnapshot } from '../log/hooks.tsx';
import type { Snapshot } from '../log/store.ts';
import type { Item, View } from '../log/view.ts';
import type { UserMessage } from '../api/actions.ts';

const viewOf = (snapshot: Snapshot): View => snapshot.view;
const sentOf = (snapshot: Snapshot): Snapshot['sent'] => snapshot.sent;

const kinds = new Set(['image', 'audio', 'video', 'document']);

/** A message that is on its way, as a row. */
export function sentItem(message: UserMessage): Item {
  const parts = typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content;
  return {
    kind: 'text', key: `t:${message.id}`, id: message.id, runId: '', first: 0, last: 0, open: true, role: 'user', seams: [], imported: false,
    text: parts.filter((p) => p.type === 'text').map((p) => p.text).join('\n'),
    parts: parts.filter((p) => kinds.has(p.type)).map((p) => (p.type === 'text' ? { type: '', mimeType: '', url: '', name: '' } : { type: p.type, mimeType: p.source.mimeType ?? '', url: p.source.type === 'url' ? p.source.value : `data:${p.source.mimeType ?? ''};base64,${p.source.value}`, name: String(p.metadata?.['filename'] ?? '') })),
  };
}

export interface Shown {
  readonly view: View;
  readonly items: readonly Item[];
  /** It is looked at as it was. */
  readonly past: boolean;
}

export function useShown(): Shown {
  const look = useLook();
  const now = useSnapshot(viewOf);
  const sent = useSnapshot(sentOf);
  return useMemo(() => {
    if (look) {
      // While it is read, and if it cannot be, what is shown stays.
      const view = look.view ?? now;
      return { view, items: view.items, past: true };
    }
    const missing = sent.filter((m) => !now.items.some((i) => i.id === m.id));
    return { view: now, items: missing.length === 0 ? now.items : [...now.items, ...missing.map(sentItem)], past: false };
  }, [look, now, sent]);
}
