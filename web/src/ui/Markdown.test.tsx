import { render, screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { Markdown } from './Markdown.tsx';

const show = (text: string) => render(<Markdown text={text} />).container;

describe('Markdown', () => {
  it('shows what models write', async () => {
    const box = show('### Title\n\nSome **bold**, *soft*, `code` and ~~gone~~.\nA second line.\n\n1. one\n2. two\n   - inner\n\n- [x] done\n- [ ] open\n\n> quoted\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n\n---\n\nH<sub>2</sub>O, see https://example.org/x.');
    expect(box.querySelector('h2')?.textContent).toBe('Title');
    expect(box.querySelectorAll('strong, em, code, del').length).toBe(5);
    expect(box.querySelectorAll('td').length).toBe(2);
    expect(box.querySelector('td:last-child')?.className).toBe('md-right');
    expect(box.querySelector('pre')?.textContent).toBe('func main() {}');
    expect(screen.getByText('go')).toBeTruthy();
    expect(screen.getByRole('img', { name: 'done' })).toBeTruthy();
    expect(box.querySelector('sub')?.textContent).toBe('2');
    const link = screen.getByRole('link');
    expect([link.getAttribute('href'), link.getAttribute('rel')]).toEqual(['https://example.org/x', 'noopener noreferrer nofollow']);
    await expectAccessible(box);
  });

  it('keeps the elements of finished blocks while the text grows', () => {
    const { container, rerender } = render(<Markdown text={'first *one*\n\nsec'} />);
    const first = container.querySelector('p');
    rerender(<Markdown text={'first *one*\n\nsecond, and more'} />);
    expect(container.querySelector('p')).toBe(first);
    expect(container.textContent).toContain('second, and more');
  });

  const attacks = [
    '<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked=1">', '<svg onload="window.hacked=1"><script>1</script></svg>',
    '<iframe src="javascript:window.hacked=1"></iframe>', '[click](javascript:window.hacked=1)', '[click](JaVaScRiPt:window.hacked=1)', '[click](data:text/html,<script>1</script>)',
    '<a href="vbscript:x">click</a>', '[x](  javascript:window.hacked=1)', '<a href="/threads" onclick="window.hacked=1">x</a>', '<form action="/threads"><input name=a><button>Go</button></form>',
    '<style>*{display:none}</style>', '<p style="position:fixed;inset:0">over all</p>', '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>', '<base href="https://evil.example">', '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    '![](https://evil.example/pixel.png)', '<img src="https://evil.example/pixel.png">', '<link rel=stylesheet href="https://evil.example/a.css">', '<p id="root" class="toast">x</p>', '<video src="https://evil.example/v"></video>', '<details open ontoggle="window.hacked=1"><summary>x</summary></details>',
    '[a][r]\n\n[r]: javascript:window.hacked=1',
  ];
  for (const attack of attacks) {
    it(`is not fooled by ${attack}`, () => {
      const box = show(attack);
      expect(box.querySelector('script, style, iframe, svg, form, input, button:not(.button), base, meta, link, video, math, [style], [id], [onerror], [onclick], [onload], [ontoggle]')).toBeNull();
      for (const img of box.querySelectorAll('img')) expect(img.src).toMatch(/^data:image\//);
      for (const a of box.querySelectorAll('a')) expect(a.href).toMatch(/^(https?|mailto):/);
      expect(box.querySelector('.toast')).toBeNull();
      expect((window as { hacked?: number }).hacked).toBeUndefined();
    });
  }

  it('shows HTML as it was written, but for plain marks', () => {
    const box = show('H<sub>2</sub>O <img src=x onerror="window.hacked=1"> <b>bold</b> &amp; a<br>b\n\n<style>*{display:none}</style>\n\n`<i>`');
    expect(box.querySelector('sub')?.textContent).toBe('2');
    expect(box.querySelector('b')?.textContent).toBe('bold');
    expect(box.textContent).toContain('<img src=x onerror="window.hacked=1">');
    expect(box.textContent).toContain('<style>*{display:none}</style>');
    expect(box.querySelector('code')?.textContent).toBe('<i>');
  });

  it('shows images that are in the text, and links to others', () => {
    const box = show('![dot](data:image/png;base64,iVBORw0KGgo=)\n\n![far](https://pictures.example/a.png)');
    expect(box.querySelector('img')?.alt).toBe('dot');
    expect(screen.getByRole('link', { name: 'far (image at pictures.example)' })).toBeTruthy();
  });

  it('shows what is nested without limit', () => {
    const box = show(`${'<div>'.repeat(3000)}deep${'</div>'.repeat(3000)}`);
    expect(box.textContent).toContain('deep');
  });
});
