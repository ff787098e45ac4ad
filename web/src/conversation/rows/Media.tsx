// Content that is not text: images by their data, everything else by name. The page loads nothing
// from other hosts: that would tell them who reads this.
import type { Part } from '../../log/view.ts';
import { DownloadIcon, ExternalIcon } from '../../ui/icons.tsx';
import { bytes } from '../../ui/time.ts';

const isImageData = (url: string): boolean => /^data:image\/[a-z0-9.+-]+;base64,/i.test(url) && !/^data:image\/svg/i.test(url);

/** How many bytes a data URL holds. */
const sizeOf = (url: string): number => Math.floor(((url.length - url.indexOf(',') - 1) * 3) / 4);

const kinds = new Map([['image', 'Image'], ['audio', 'Sound'], ['video', 'Video'], ['document', 'Document']]);

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return 'another server';
  }
}

function One({ part, from }: { part: Part; from: string }) {
  const kind = kinds.get(part.type) ?? 'File';
  const name = part.name || `${kind}${part.mimeType ? ` (${part.mimeType})` : ''}`;
  if (isImageData(part.url)) return <img className="conversation-image" src={part.url} alt={part.name || `An image ${from}`} />;
  if (part.url.startsWith('data:')) {
    return <a className="conversation-file" href={part.url} download={part.name || `${kind.toLowerCase()}.${part.mimeType.split('/')[1] ?? 'bin'}`}><DownloadIcon /><span className="truncate">{name}</span><span className="num faint">{bytes(sizeOf(part.url))}</span></a>;
  }
  if (part.url.startsWith('https:')) {
    return <a className="conversation-file" href={part.url} target="_blank" rel="noopener noreferrer nofollow"><ExternalIcon /><span className="truncate">{name}</span><span className="faint truncate">at {hostOf(part.url)}</span></a>;
  }
  return <span className="conversation-file">{name}</span>;
}

export function Media({ parts, from = 'that you sent' }: { parts: readonly Part[]; from?: string }) {
  return <div className="conversation-media">{parts.map((part, i) => <One key={i} part={part} from={from} />)}</div>;
}
