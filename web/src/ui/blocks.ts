// Markdown as blocks, so that of a growing text only the last block is parsed again.
//
// A model's text is not to be trusted to be reasonable: a block that is nested deeper
// than a limit, or is a longer paragraph, is shown as it was written.
import { Marked, type Token, type TokensList } from 'marked';

export interface Block {
  /** The source: blocks with the same source, kind and level look the same. */
  raw: string;
  kind: 'markdown' | 'plain';
  /** Of a heading: its level in the page, so that none is left out whatever the text says. */
  level?: number;
  /** The HTML that marked made of it; undefined for plain text. */
  tokens?: TokensList;
}

export interface Blocks {
  text: string;
  list: readonly Block[];
  /** Where the last block starts that more text can change. */
  open: number;
}

const deepest = 24;
const longestParagraph = 24 * 1024;
const longestBlock = 256 * 1024;

/** Models use single line breaks, so they are kept. */
export const marked = new Marked({ gfm: true, breaks: true, renderer: { html: ({ text }) => htmlAsText(text) } });

/** Tags without attributes that models format with. */
const harmless = /(<\/?(?:br|hr|b|strong|i|em|del|s|sub|sup|kbd|mark|details|summary|p|code)\s*\/?>)/i;

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** HTML in Markdown is shown as it was written. Even where nothing runs, a browser that parses handlers and styles reports them to those who watch the page's policy. */
const htmlAsText = (html: string): string => html.split(harmless).map((part, i) => (i % 2 === 1 ? part : part.replace(/[<>]|&(?!#?\w+;)/g, (c) => escapes[c] ?? c))).join('');

const nested = new RegExp(`^(?:[ \\t]*(?:>|[-*+]|\\d{1,9}[.)])[ \\t]*){${deepest},}`, 'm');
const indented = new RegExp(`^[ ]{${deepest * 2},}(?:[-*+]|\\d{1,9}[.)])[ ]`, 'm');
// Runs of marks make what looks for their ends slow.
const runs = /[[(<*_~`!]{200,}/;

function unreasonable(text: string): boolean {
  return nested.test(text) || indented.test(text) || runs.test(text);
}

function tooLong(token: Token): boolean {
  const limit = token.type === 'code' ? Infinity : token.type === 'paragraph' || token.type === 'heading' ? longestParagraph : longestBlock;
  return token.raw.length > limit;
}

/** The tokens of a text, or undefined if it is shown as it is. */
function lex(text: string): TokensList | undefined {
  const outside = text.replace(/^(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^\1|$(?![\s\S]))/gm, '');
  if (unreasonable(outside) || longestRun(outside) > longestParagraph) return undefined;
  try {
    return marked.lexer(text);
  } catch {
    return undefined;
  }
}

/** The length of the longest piece of text without an empty line in it. */
function longestRun(text: string): number {
  let longest = 0;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n\n', at);
    longest = Math.max(longest, (end < 0 ? text.length : end) - at);
    if (end < 0) break;
    at = end + 2;
  }
  return longest;
}

function blockOf(token: Token, links: TokensList['links'], level: number | undefined): Block {
  if (tooLong(token)) return { raw: token.raw, kind: 'plain' };
  const tokens = Object.assign([token], { links }) as TokensList;
  return { raw: token.raw, kind: 'markdown', level, tokens };
}

/** The blocks of a text. before is what they were when the text was shorter: what stands in it and cannot change is kept. */
export function blocksOf(text: string, before?: Blocks): Blocks {
  text = text.replace(/\r\n?/g, '\n');
  const keeps = before !== undefined && before.open > 0 && text.startsWith(before.text.slice(0, before.open));
  const kept: Block[] = [];
  let start = 0;
  if (keeps) {
    for (const block of before.list) {
      if (start >= before.open) break;
      kept.push(block);
      start += block.raw.length;
    }
  }
  const tokens = lex(text.slice(start));
  if (!tokens) return { text, list: [...kept, { raw: text.slice(start), kind: 'plain' }], open: 0 };
  let level = kept.findLast((b) => b.level !== undefined)?.level ?? 0;
  const list = [...kept];
  for (const token of tokens) {
    if (token.type === 'heading') level = Math.min(token.depth, level + 1);
    list.push(blockOf(token, tokens.links, token.type === 'heading' ? level : undefined));
  }
  return { text, list, open: start + openFrom(tokens) };
}

/**
 * Where the part of a text starts that more text can still change: what follows the last
 * empty line, and a list before that, because its next item may come. Only links whose
 * addresses come later, in a definition, stay unknown in what is finished.
 */
function openFrom(tokens: readonly Token[]): number {
  let first = tokens.length;
  while (first > 0 && tokens[first - 1].type === 'space') first--;
  for (first--; first > 0; first--) {
    const before = tokens[first - 1].type === 'space' ? tokens[first - 2] : undefined;
    if (before && before.type !== 'list') break;
  }
  return tokens.slice(0, Math.max(0, first)).reduce((n, token) => n + token.raw.length, 0);
}
