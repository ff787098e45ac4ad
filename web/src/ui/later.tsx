import { lazy, type ComponentType } from 'react';

/** Repeats the loading that has failed. */
const failed = new Set<() => void>();

/** Before something is tried again that may not have been loaded. */
export function loadAgain(): void {
  for (const again of failed) again();
  failed.clear();
}

/**
 * A component that is loaded when it is first shown, below a Suspense. Unlike with React's own
 * lazy, one that could not be loaded is not given up for good: loadAgain.
 */
export function later<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  const attempt = () => lazy(() => load().catch((error: unknown) => {
    failed.add(() => {
      Panel = attempt();
    });
    throw error;
  }));
  let Panel = attempt();
  return function Later(props: P) {
    return <Panel {...props} />;
  };
}
