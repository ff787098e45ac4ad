import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { JsonDiff, TextDiff } from './Diff.tsx';
import { JsonTree } from './JsonTree.tsx';
import { VirtualList } from './VirtualList.tsx';

const names = () => screen.getAllByRole('treeitem').map((e) => e.textContent);

describe('JsonTree', () => {
  const value = { name: 'Lyon', trip: { nights: 3, stops: ['a', 'b'] }, none: null, empty: [] };

  it('is a tree that the arrow keys go through', async () => {
    render(<JsonTree label="State" value={value} />);
    expect(names()).toEqual(['{', 'name: "Lyon"', 'trip: {nights, stops}', 'none: null', 'empty: []']);
    await expectAccessible();
    await userEvent.tab();
    await userEvent.tab();
    await userEvent.keyboard('{ArrowDown}{ArrowDown}{ArrowRight}');
    expect(names()).toContain('nights: 3');
    expect(names()).toContain('stops: [2 items]');
    await userEvent.keyboard('{ArrowDown}');
    expect(document.activeElement?.textContent).toBe('nights: 3');
    await userEvent.keyboard('{ArrowLeft}{ArrowLeft}');
    expect(names()).not.toContain('nights: 3');
    await userEvent.keyboard('{End}');
    expect(document.activeElement?.textContent).toBe('empty: []');
    await expectAccessible();
  });

  it('folds what is long', async () => {
    render(<JsonTree label="State" value={{ text: 'x'.repeat(5000), list: Array.from({ length: 250 }, (_, i) => i) }} depth={2} />);
    expect(names()[1]?.length).toBeLessThan(500);
    expect(names().length).toBe(3 + 100 + 1);
    await userEvent.click(screen.getByText('150 more'));
    expect(names().length).toBe(3 + 250);
    await userEvent.click(screen.getByRole('button', { name: 'all 5,000 characters', hidden: true }));
    expect(names()[1]?.length).toBeGreaterThan(5000);
  });

  it('marks what has changed', () => {
    render(<JsonTree label="State" value={value} depth={2} marked={(path) => path === '/trip/nights'} />);
    expect(document.querySelector('.json-marked')?.textContent).toBe('nights: 3');
  });

  it('copies the whole', async () => {
    const user = userEvent.setup();
    render(<JsonTree label="State" value={value} />);
    await user.click(screen.getByRole('button', { name: 'Copy as JSON' }));
    expect(JSON.parse(await navigator.clipboard.readText())).toEqual(value);
  });

  it('shows values that are nested without limit', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 5000; i++) deep = [deep];
    render(<JsonTree label="State" value={deep} depth={Infinity} />);
    expect(names().length).toBeLessThan(100);
  });
});

describe('differences', () => {
  it('of JSON are what changed, and how much did not', async () => {
    const { container } = render(<JsonDiff label="State" before={{ a: 1, gone: 2, kept: 3, list: [{ id: 'x', n: 1 }] }} after={{ a: 2, kept: 3, list: [{ id: 'new' }, { id: 'x', n: 1 }] }} />);
    await screen.findByRole('list', { name: 'State' });
    expect([...container.querySelectorAll('.diff-row')].map((e) => `${(e as HTMLElement).dataset.kind} ${e.textContent}`)).toEqual([
      'changed ~changed: a: 1 → 2', 'removed −removed: gone: 2', 'inside list', 'added +added: 0: {"id":"new"}', 'same 1 unchanged', 'same 1 unchanged',
    ]);
    await expectAccessible();
  });

  it('of texts are lines', async () => {
    render(<TextDiff label="Message" before={'one\ntwo\n3\n4\n5\n6\n7\n8\n9'} after={'one\n2\n3\n4\n5\n6\n7\n8\n9'} />);
    await screen.findByRole('list', { name: 'Message' });
    expect(screen.getAllByRole('listitem').map((e) => e.textContent)).toEqual(['one', '−removed: two', '+added: 2', '3', '4', '5', '4 unchanged lines']);
    await expectAccessible();
  });

  it('say when there are none', async () => {
    render(<><JsonDiff label="State" before={{ a: 1 }} after={{ a: 1 }} /><TextDiff label="Text" before="a" after="a" /></>);
    expect((await screen.findAllByText('Nothing is different.')).length).toBe(2);
  });
});

describe('VirtualList', () => {
  it('has few rows of many, and is used with the keyboard', async () => {
    const opened = vi.fn();
    function Listed() {
      const [at, setAt] = useState<number | undefined>();
      return <VirtualList label="Records" count={10_000} keyOf={(i) => i} active={at} onActive={setAt} onOpen={opened}>{(i) => <span>record {i}</span>}</VirtualList>;
    }
    render(<Listed />);
    const rows = screen.getAllByRole('listitem');
    expect(rows.length).toBeGreaterThan(5);
    expect(rows.length).toBeLessThanOrEqual(200);
    expect(rows[0].getAttribute('aria-setsize')).toBe('10000');
    await expectAccessible();
    screen.getByRole('region', { name: 'Records' }).focus();
    await userEvent.keyboard('{ArrowDown}{ArrowDown}');
    expect(document.activeElement?.textContent).toBe('record 1');
    await userEvent.keyboard('{Enter}');
    expect(opened).toHaveBeenCalledWith(1);
  });

  it('is at its end from the beginning if it follows, however long it is', () => {
    const height = vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(140_000);
    const told = vi.fn();
    const list = (count: number) => <VirtualList label="Records" count={count} keyOf={(i) => i} follow onAtEnd={told}>{(i) => <span>record {i}</span>}</VirtualList>;
    const { rerender } = render(list(5000));
    rerender(list(10_000));
    height.mockRestore();
    expect(told).not.toHaveBeenCalledWith(false);
  });

  it('is a log for a conversation, and quiet', () => {
    render(<VirtualList role="log" label="Conversation" count={1} keyOf={(i) => i}>{() => 'hello'}</VirtualList>);
    expect(screen.getByRole('log').getAttribute('aria-live')).toBe('off');
  });
});
