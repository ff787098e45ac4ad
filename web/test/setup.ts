// The parts of a browser that jsdom lacks, and the end of every component test.
import { cleanup, configure } from '@testing-library/react';
import { afterEach, vi } from 'vitest';

// A busy machine is slow, not wrong.
configure({ asyncUtilTimeout: 30_000 });

afterEach(() => {
  cleanup();
  localStorage.clear();
  sessionStorage.clear();
});

class Observer {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
  takeRecords(): never[] {
    return [];
  }
}

vi.stubGlobal('ResizeObserver', Observer);
vi.stubGlobal('IntersectionObserver', Observer);
vi.stubGlobal('matchMedia', (media: string) => ({
  media, matches: false, onchange: null,
  addEventListener() {}, removeEventListener() {}, addListener() {}, removeListener() {}, dispatchEvent: () => false,
}));
// Some browsers return a promise here: an effect must not return it.
const scrolls = (() => Promise.resolve()) as unknown as () => void;
Element.prototype.scrollIntoView = scrolls;
Element.prototype.scrollTo = scrolls;
Element.prototype.getAnimations = () => [];
Element.prototype.setPointerCapture = () => {};
Element.prototype.releasePointerCapture = () => {};

// Without a layout nothing has a size: rows of lists have one line, everything else a screen.
Object.defineProperties(HTMLElement.prototype, {
  offsetHeight: { configurable: true, get(this: HTMLElement) { return this.dataset.index === undefined ? 600 : 28; } },
  clientHeight: { configurable: true, get(this: HTMLElement) { return this.offsetHeight; } },
  clientWidth: { configurable: true, get: () => 800 },
  offsetWidth: { configurable: true, get: () => 800 },
});
