// The elements that Markdown may have: marked makes HTML of it, DOMPurify takes away what could do
// something, and what is left becomes elements of React. Nothing is set as HTML.
import DOMPurify from 'dompurify';
import { type Block, marked } from './blocks.ts';

const tags = [
  'p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'blockquote', 'pre', 'code', 'table', 'thead', 'tbody', 'tr', 'th', 'td',
  'strong', 'b', 'em', 'i', 'del', 's', 'sub', 'sup', 'kbd', 'mark', 'a', 'img', 'input', 'details', 'summary', 'dl', 'dt', 'dd', 'span', 'div',
];
const attributes = ['href', 'src', 'alt', 'title', 'start', 'align', 'checked', 'type', 'class'];

/** The nodes that a block is shown as. */
export function fragmentOf(block: Block): DocumentFragment {
  const html = block.tokens ? (marked.parser(block.tokens) as string) : '';
  return DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true, ALLOWED_TAGS: tags, ALLOWED_ATTR: attributes, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
    // These are no addresses.
    ADD_URI_SAFE_ATTR: ['align', 'start', 'checked', 'type'],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  });
}

/** The address of a link, if one may follow it. */
export function safeLink(href: string | null): string | undefined {
  if (!href) return undefined;
  try {
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined; // relative: it would lead to this server
  }
}

/** Whether an image is in the text itself. Others would tell their server who reads this. */
export const embeddedImage = (src: string | null): boolean => /^data:image\/(?:png|jpeg|gif|webp);base64,/i.test(src ?? '');
