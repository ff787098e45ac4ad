import { useStudio } from './context.tsx';
import { useStore } from './store.ts';

/** Where announcements are said. They are in the page from the start, because screen readers miss regions that come with their text. */
export function LiveRegions() {
  const { polite, assertive } = useStore(useStudio().announcer.said);
  return (
    <>
      <p className="sr" role="status" data-live="polite">{polite}</p>
      <p className="sr" role="alert" data-live="assertive">{assertive}</p>
    </>
  );
}
