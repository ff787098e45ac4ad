// A view as AG-UI's messages: what a client shows, and sends back.

import type { CallItem, View } from './view';

/** A message in AG-UI's form, as far as a view knows it. */
export interface Said {
  readonly id: string;
  readonly role: string;
  readonly [name: string]: unknown;
}

const toolCall = (call: CallItem): unknown => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.args } });

/** Returns the messages that a view shows, in their order; those of the server before and with a text of its own. */
export function messagesOf(view: View): Said[] {
  const said: { id: string; role: string; [name: string]: unknown }[] = [];
  const at = new Map<string, number>();
  const results: { parent: string; message: Said }[] = [];
  for (const item of view.items) {
    if (item.kind === 'text') {
      at.set(item.id, said.push({ id: item.id, role: item.role, content: item.raw ?? item.text }) - 1);
    } else if (item.kind === 'reasoning') {
      said.push({ id: item.id, role: 'reasoning', content: item.text });
    } else if (item.kind === 'activity') {
      said.push({ id: item.id, role: 'activity', activityType: item.name, content: item.content });
    } else if (item.kind === 'call') {
      const parent = item.parentId || item.id;
      if (!at.has(parent)) at.set(parent, said.push({ id: parent, role: 'assistant' }) - 1);
      const message = said[at.get(parent) as number];
      if (message !== undefined) message['toolCalls'] = [...((message['toolCalls'] as unknown[] | undefined) ?? []), toolCall(item)];
      if (item.status === 'done' || item.status === 'failed') results.push({ parent, message: { id: item.resultId, role: 'tool', toolCallId: item.id, content: item.rawResult ?? item.result } });
    }
  }
  // Results follow the message that made the calls.
  return said.flatMap((message) => [message, ...results.filter((result) => result.parent === message.id).map((result) => result.message)]);
}
