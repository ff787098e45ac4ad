import { fireEvent, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import type { Attachment } from './attachments.ts';
import { TooltipProvider } from '../ui/Tooltip.tsx';
import { Composer, type ComposerProps } from './Composer.tsx';

function Writing(props: Partial<ComposerProps>) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState<readonly Attachment[]>([]);
  return <TooltipProvider><main><Composer text={text} onText={setText} files={files} onFiles={setFiles} onSend={() => Promise.resolve()} busy={false} stopping={false} onStop={() => {}} placeholder="Write" accepts={{}} {...props} /></main></TooltipProvider>;
}

const field = () => screen.getByLabelText('Message') as HTMLTextAreaElement;
const file = (name: string, type: string, content = 'x') => new File([content], name, { type });

describe('Composer', () => {
  it('sends with Enter and breaks the line with Shift and Enter', async () => {
    const onSend = vi.fn(() => Promise.resolve());
    render(<Writing onSend={onSend} />);
    await expectAccessible();
    await userEvent.type(field(), 'one{Shift>}{Enter}{/Shift}two{Enter}');
    expect(onSend).toHaveBeenCalledExactlyOnceWith('one\ntwo');
    expect(field().value).toBe('');
    expect(document.activeElement).toBe(field());
  });

  it('leaves Enter to an input method', () => {
    const onSend = vi.fn(() => Promise.resolve());
    render(<Writing onSend={onSend} />);
    fireEvent.change(field(), { target: { value: 'に' } });
    fireEvent.keyDown(field(), { key: 'Enter', isComposing: true });
    fireEvent.keyDown(field(), { key: 'Enter', keyCode: 229 });
    expect(onSend).not.toHaveBeenCalled();
  });

  it('sends nothing that is empty', async () => {
    const onSend = vi.fn(() => Promise.resolve());
    render(<Writing onSend={onSend} />);
    await userEvent.type(field(), '  {Enter}');
    expect(onSend).not.toHaveBeenCalled();
  });

  it('has everything again when it is refused', async () => {
    render(<Writing onSend={() => Promise.reject(new Error('no'))} />);
    await userEvent.upload(document.querySelector('input[type=file]') as HTMLInputElement, file('a.txt', 'text/plain'));
    await userEvent.type(field(), 'keep me{Enter}');
    await expect.poll(() => field().value).toBe('keep me');
    expect(screen.getByText('a.txt')).toBeTruthy();
  });

  it('says while a run is under way that it waits, and stops it', async () => {
    const [onSend, onStop] = [vi.fn(() => Promise.resolve()), vi.fn()];
    render(<Writing busy onSend={onSend} onStop={onStop} />);
    await userEvent.type(field(), 'later{Enter}');
    expect(onSend).not.toHaveBeenCalled();
    expect(field().value).toBe('later');
    expect(screen.getByText(/Stop it first/)).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Stop' }));
    expect(onStop).toHaveBeenCalledOnce();
  });

  it('takes files by button, paste and drop, and sends them as parts', async () => {
    const onSend = vi.fn(() => Promise.resolve());
    render(<Writing onSend={onSend} />);
    await userEvent.upload(document.querySelector('input[type=file]') as HTMLInputElement, file('cat.png', 'image/png'));
    fireEvent.paste(field(), { clipboardData: { files: [file('note.md', '', '`` `')] } });
    fireEvent.drop(field(), { dataTransfer: { files: [file('paper.pdf', 'application/pdf')], types: ['Files'] } });
    await expect.poll(() => screen.queryAllByRole('listitem').length).toBe(3);
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Remove cat.png' }));
    await userEvent.upload(document.querySelector('input[type=file]') as HTMLInputElement, file('dog.png', 'image/png'));
    await userEvent.type(field(), 'look{Enter}');
    const [content] = onSend.mock.calls[0] as unknown as [readonly { type: string; text?: string }[]];
    expect(content[0]).toEqual({ type: 'text', text: 'look' });
    expect(content.map((p) => p.type).sort()).toEqual(['document', 'image', 'text', 'text']);
    expect(screen.queryByText('dog.png')).toBeNull();
  });

  it('says before it is sent what cannot be', async () => {
    render(<Writing accepts={{ image: false }} limits={{ body: 100_000, media: 200_000 }} />);
    const input = document.querySelector('input[type=file]') as HTMLInputElement;
    fireEvent.change(input, { target: { files: [file('cat.png', 'image/png')] } });
    expect(await screen.findByText('cat.png: this agent takes no images.')).toBeTruthy();
    fireEvent.change(input, { target: { files: [file('large.pdf', 'application/pdf', 'x'.repeat(50_000))] } });
    expect(await screen.findByText('large.pdf')).toBeTruthy();
    fireEvent.change(input, { target: { files: [file('larger.pdf', 'application/pdf', 'x'.repeat(60_000))] } });
    expect(await screen.findByText(/larger.pdf is too large: 59 KB/)).toBeTruthy();
    fireEvent.change(input, { target: { files: [file('large.txt', 'text/plain', 'x'.repeat(50_000))] } });
    expect(await screen.findByText(/large.txt is too large: 49 KB/)).toBeTruthy();
    fireEvent.change(input, { target: { files: [file('a.exe', 'application/x-msdownload')] } });
    expect(await screen.findByText(/a.exe is of a kind that cannot be sent/)).toBeTruthy();
    await expectAccessible();
  });
});
