// Attachments of a person besides words: images, sounds, videos and PDFs as parts of their kind,
// text files as text. An attachment that the agent does not take, or that is too large, is reported before it is sent.
import type { ContentPart, UserMessage } from '../api/actions.ts';
import { fields, list, text, type Fields } from '../log/json.ts';
import { bytes } from '../ui/time.ts';

export interface Attachment {
  readonly id: number;
  readonly name: string;
  readonly size: number;
  readonly part: ContentPart;
}

/** The body of a request without its attachments: the text of the message, and its frame. */
const room = 64 * 1024;

/** The kinds that an agent says it takes; what it does not mention may work. */
export interface Accepts {
  readonly image?: boolean;
  readonly audio?: boolean;
  readonly video?: boolean;
  readonly pdf?: boolean;
}

/** Reads what an agent takes from its capabilities. */
export function acceptsOf(capabilities: unknown): Accepts {
  const input = fields(fields(fields(capabilities)['multimodal'])['input']);
  return Object.fromEntries(Object.entries(input).filter(([, v]) => typeof v === 'boolean'));
}

const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)$)/;
const textNames = /\.(txt|md|markdown|csv|tsv|json|ya?ml|toml|xml|html?|css|js|mjs|ts|tsx|jsx|go|py|rb|rs|java|c|h|cpp|sh|sql|log|ini|conf|env|diff|patch)$/i;

type Kind = 'image' | 'audio' | 'video' | 'pdf' | 'text';

/** The kind of a file; undefined if it cannot be sent. */
export function kindOf(file: { type: string; name: string }): Kind | undefined {
  if (/^image\/(?!svg)/.test(file.type)) return 'image';
  if (file.type.startsWith('audio/')) return 'audio';
  if (file.type.startsWith('video/')) return 'video';
  if (file.type === 'application/pdf') return 'pdf';
  return textTypes.test(file.type) || file.type === 'image/svg+xml' || textNames.test(file.name) ? 'text' : undefined;
}

const plural: Record<Kind, string> = { image: 'images', audio: 'sounds', video: 'videos', pdf: 'PDFs', text: 'texts' };

/** How large the body of a request may be, in bytes, and one of which more than half is media; any size until the server has said it. */
export interface Limits {
  readonly body?: number | undefined;
  readonly media?: number | undefined;
}

/** How many bytes attachments take in a request. */
function weigh(attachments: readonly Attachment[]): { all: number; media: number } {
  let [all, media] = [0, 0];
  for (const { part } of attachments) {
    if (part.type === 'text') all += part.text.length * 1.1;
    else [all, media] = [all + part.source.value.length, media + part.source.value.length];
  }
  return { all, media };
}

/** Why a file cannot be sent with the others; '' if it can. */
export function problemOf(file: { type: string; name: string; size: number }, accepts: Accepts, others: readonly Attachment[], { body = Infinity, media: mediaBody = body }: Limits = {}): string {
  const kind = kindOf(file);
  if (kind === undefined) return `${file.name} is of a kind that cannot be sent (${file.type || 'unknown'}). Images, sounds, videos, PDFs and texts can.`;
  if (kind !== 'text' && accepts[kind] === false) return `${file.name}: this agent takes no ${plural[kind]}.`;
  const { all, media } = weigh(others);
  const text = kind === 'text' ? file.size * 1.1 : 0;
  const data = kind === 'text' ? 0 : (file.size * 4) / 3;
  const most = 2 * (media + data) > all + text + data + room ? Math.max(body, mediaBody) : body;
  if (all + text + data > most - room) return `${file.name} is too large: ${bytes(file.size)}. A message has room for ${bytes(Math.max(0, ((most - room - all) * 3) / 4))} more.`;
  return '';
}

let last = 0;

async function base64(file: Blob): Promise<string> {
  const data = new Uint8Array(await file.arrayBuffer());
  let text = '';
  for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(text);
}

/** Reads a file that can be sent. */
export async function attach(file: File): Promise<Attachment> {
  const kind = kindOf(file) ?? 'text';
  const base = { id: ++last, name: file.name || 'pasted', size: file.size };
  if (kind === 'text') {
    const said = await file.text();
    // A fence that is longer than any in the text.
    const fence = '`'.repeat([...said.matchAll(/`+/g)].reduce((n, [run]) => Math.max(n, run.length + 1), 3));
    return { ...base, part: { type: 'text', text: `${base.name}:\n\n${fence}\n${said.replace(/\n$/, '')}\n${fence}` } };
  }
  const source = { type: 'data', value: await base64(file), mimeType: file.type } as const;
  return { ...base, part: { type: kind === 'pdf' ? 'document' : kind, source, metadata: { filename: base.name } } };
}

const isAttachment = ({ name, size, part }: Fields): boolean => typeof name === 'string' && typeof size === 'number' && typeof (fields(part)['text'] ?? fields(fields(part)['source'])['value']) === 'string';

/** Attachments that were kept as JSON; what is none is left out. */
export const restored = (kept: unknown): readonly Attachment[] => list(kept).map(fields).filter(isAttachment).map((a) => ({ ...(a as unknown as Attachment), id: ++last }));

/** The parts of a message that was not sent: the opposite of contentOf. */
export function partsOf(content: UserMessage['content']): { text: string; files: readonly Attachment[] } {
  if (typeof content === 'string') return { text: content, files: [] };
  const [first, ...rest] = content;
  const said = first?.type === 'text' ? first.text : '';
  const nameOf = (part: ContentPart): string => (part.type === 'text' ? /^(.+):\n/.exec(part.text)?.[1] : text(part.metadata?.['filename'])) || part.type;
  const files = (first?.type === 'text' ? rest : content).map((part) => ({ id: ++last, name: nameOf(part), size: part.type === 'text' ? part.text.length : Math.floor((part.source.value.length * 3) / 4), part }));
  return { text: said, files };
}

/** The content of a message: its text alone, or parts. */
export function contentOf(text: string, attachments: readonly Attachment[]): UserMessage['content'] {
  if (attachments.length === 0) return text;
  return [...(text.trim() === '' ? [] : [{ type: 'text', text } as const]), ...attachments.map((a) => a.part)];
}
