// Puts an element into a rendered text, at a position of its source.
import { positionIn } from './position.ts';

function textsIn(root: Node): Text[] {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) texts.push(node as Text);
  return texts;
}

/** Puts `mark` where what stands at `offset` of `source` is shown in `root`. */
export function placeAt(root: ParentNode & Node, mark: Element, source: string, offset: number): void {
  const texts = textsIn(root);
  let left = positionIn(source, texts.map((text) => text.data).join(''), offset);
  for (const text of texts) {
    if (left > text.length) {
      left -= text.length;
      continue;
    }
    if (left === text.length) text.after(mark);
    else text.splitText(left).before(mark);
    // A clickable element does not stand in a link.
    mark.parentElement?.closest('a')?.after(mark);
    return;
  }
  root.append(mark);
}
