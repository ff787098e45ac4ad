import { describe, expect, it } from 'vitest';
import { isOpen, noStory, tell, type Phase } from './kill.ts';

const at = (phase: Phase, running = true) => ({ ...noStory, phase, running, killedAt: 1000, backAt: 1600, wentOnAt: 1900, problem: 'No.' });

describe('the story of a kill', () => {
  it('tells each phase, with how long it took', () => {
    expect(tell(noStory)).toBeUndefined();
    expect(tell(at('sent'))?.title).toBe('Killing the server…');
    expect(tell(at('dead'))?.text).toContain('The run goes on');
    expect(tell(at('dead', false))?.text).not.toContain('The run goes on');
    expect(tell(at('back'))?.title).toBe('A new process is there after 600 ms');
    expect(tell(at('back', false))?.text).toContain('Nothing was lost');
    expect(tell(at('went_on'))?.title).toBe('The run went on 900 ms after the kill');
    expect(tell(at('failed'))).toEqual({ title: 'The server was not killed', text: 'No.' });
  });
  it('is open until the run goes on, or a process is there', () => {
    expect((['idle', 'sent', 'dead', 'back', 'went_on', 'failed'] as const).filter((phase) => isOpen(at(phase)))).toEqual(['sent', 'dead', 'back']);
    expect(isOpen(at('back', false))).toBe(false);
  });
});
