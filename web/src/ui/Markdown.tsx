// Markdown as a model writes it: growing, and not to be trusted.
import { createElement, Fragment, memo, useMemo, useRef, type ReactNode } from 'react';
import { blocksOf, type Block, type Blocks } from './blocks.ts';
import { CopyButton } from './CopyButton.tsx';
import { placeAt } from './mark.ts';
import './Markdown.css';
import { embeddedImage, fragmentOf, safeLink } from './sanitize.ts';

/** Deeper levels are shown as their text. */
const deepest = 48;

const voids = new Set(['br', 'hr']);
const plainTags = new Set(['p', 'ul', 'li', 'blockquote', 'thead', 'tbody', 'tr', 'strong', 'b', 'em', 'i', 'del', 's', 'sub', 'sup', 'kbd', 'mark', 'details', 'summary', 'dl', 'dt', 'dd', 'span', 'div', 'code']);

interface Surroundings {
  depth: number;
  /** The level of a heading in the page, of the block's own or of one inside of it. */
  level: number;
  /** The text that was inserted. */
  placed: ReadonlyMap<Node, ReactNode>;
}

/** Something that stands in a text, at a position of its source. */
export interface TextMark {
  readonly key: string;
  readonly offset: number;
  readonly node: ReactNode;
}

const none: readonly TextMark[] = [];

function Code({ text, language, children }: { text: string; language: string; children?: ReactNode }) {
  return (
    <div className="md-code">
      <div className="md-code-bar"><span>{language || 'text'}</span><CopyButton text={text} label="Copy code" /></div>
      {/* Long lines are scrolled with the keyboard too. */}
      <pre tabIndex={0} aria-label={`Code${language && `, ${language}`}`} role="group"><code>{children ?? text}</code></pre>
    </div>
  );
}

/** Between parts of a table and items of a list, space means nothing, and React wants none there. */
const spaceless = new Set(['table', 'thead', 'tbody', 'tr', 'ul', 'ol', 'dl']);

function children(node: Node, around: Surroundings): ReactNode[] {
  const nodes = [...node.childNodes];
  const meant = node instanceof Element && spaceless.has(node.localName) ? nodes.filter((n) => n instanceof Element) : nodes;
  return meant.map((child, i) => toReact(child, i, { ...around, depth: around.depth + 1 }));
}

function link(el: Element, key: number, around: Surroundings): ReactNode {
  const href = safeLink(el.getAttribute('href'));
  if (!href) return <span key={key}>{children(el, around)}</span>;
  return <a key={key} href={href} target="_blank" rel="noopener noreferrer nofollow" title={el.getAttribute('title') ?? undefined}>{children(el, around)}</a>;
}

function image(el: Element, key: number): ReactNode {
  const src = el.getAttribute('src');
  const alt = el.getAttribute('alt') ?? '';
  if (src && embeddedImage(src)) return <img key={key} src={src} alt={alt} />;
  const href = safeLink(src);
  const name = alt || 'image';
  if (!href) return <span key={key}>{name}</span>;
  return <a key={key} href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>{name} (image at {new URL(href).host})</a>;
}

function pre(el: Element, key: number, around: Surroundings): ReactNode {
  const code = el.querySelector('code');
  const marked = code !== null && [...around.placed.keys()].some((mark) => code.contains(mark));
  const language = /(?:^|\s)language-(\S+)/.exec(code?.className ?? '')?.[1] ?? '';
  return <Code key={key} text={(el.textContent ?? '').replace(/\n$/, '')} language={language.slice(0, 30)}>{marked ? children(code, around) : undefined}</Code>;
}

function toReact(node: Node, key: number, around: Surroundings): ReactNode {
  if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
  if (!(node instanceof Element)) return null;
  const placed = around.placed.get(node);
  if (placed !== undefined) return <Fragment key={key}>{placed}</Fragment>;
  if (around.depth > deepest) return node.textContent;
  const tag = node.localName;
  if (voids.has(tag)) return createElement(tag, { key });
  if (plainTags.has(tag)) return createElement(tag, { key }, ...children(node, around));
  if (/^h[1-6]$/.test(tag)) return createElement(`h${Math.min(6, around.level)}`, { key, className: `md-${tag}` }, ...children(node, around));
  const align = node.getAttribute('align');
  switch (tag) {
    case 'a': return link(node, key, around);
    case 'img': return image(node, key);
    case 'pre': return pre(node, key, around);
    case 'ol': return <ol key={key} start={Number(node.getAttribute('start')) || undefined}>{children(node, around)}</ol>;
    case 'table': return <div key={key} className="md-table" tabIndex={0} role="group" aria-label="Table"><table>{children(node, around)}</table></div>;
    case 'th':
    case 'td': return createElement(tag, { key, className: align ? `md-${align}` : undefined, scope: tag === 'th' ? 'col' : undefined }, ...children(node, around));
    case 'input': return <span key={key} role="img" aria-label={node.hasAttribute('checked') ? 'done' : 'open'} className="md-check">{node.hasAttribute('checked') ? '☑' : '☐'}</span>;
    default: return node.textContent;
  }
}

interface BlockProps {
  block: Block;
  base: number;
  /** The marks in it, with offsets in the block. */
  marks: readonly TextMark[];
}

const sameMarks = (a: readonly TextMark[], b: readonly TextMark[]) => a.length === b.length && a.every((mark, i) => mark.key === b[i].key && mark.offset === b[i].offset && mark.node === b[i].node);

const BlockView = memo(function BlockView({ block, base, marks }: BlockProps) {
  const fragment = useMemo(() => {
    const made = block.kind === 'markdown' ? fragmentOf(block) : null;
    if (!made) return null;
    const placed = new Map<Node, ReactNode>();
    for (const { offset, node } of marks) {
      const place = document.createElement('span');
      placeAt(made, place, block.raw, offset);
      placed.set(place, node);
    }
    return { made, placed };
  }, [block, marks]);
  if (!fragment) return <p className="md-plain">{block.raw}{marks.map(({ key, node }) => <Fragment key={key}>{node}</Fragment>)}</p>;
  return children(fragment.made, { depth: 0, level: base + (block.level ?? 1) - 1, placed: fragment.placed });
}, (a, b) => a.base === b.base && a.block.raw === b.block.raw && a.block.kind === b.block.kind && a.block.level === b.block.level && sameMarks(a.marks, b.marks));

/** Gives each block the marks that stand in it: at the end of one rather than between two. */
function marksOf(blocks: readonly Block[], marks: readonly TextMark[]): (readonly TextMark[])[] {
  if (marks.length === 0) return [];
  const of: TextMark[][] = blocks.map(() => []);
  for (const mark of marks) {
    let start = 0;
    let best = { index: 0, start: 0 };
    blocks.forEach((block, index) => {
      if (start < mark.offset && block.raw.trim()) best = { index, start };
      start += block.raw.length;
    });
    of[best.index]?.push({ ...mark, offset: mark.offset - best.start });
  }
  return of;
}

/**
 * A text in Markdown. While it grows, blocks that are finished stay as they are, with what
 * the reader has selected in them. headings is the level of its highest headings in the page.
 */
export const Markdown = memo(function Markdown({ text, headings = 2, marks = none }: { text: string; headings?: number; marks?: readonly TextMark[] }) {
  const before = useRef<Blocks | undefined>(undefined);
  const blocks = useMemo(() => blocksOf(text, before.current), [text]);
  before.current = blocks;
  const placed = marksOf(blocks.list, marks);
  return <div className="md">{blocks.list.map((block, i) => <BlockView key={i} block={block} base={headings} marks={placed[i] ?? none} />)}</div>;
});
