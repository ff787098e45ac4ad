import './Spinner.css';

/** Something is under way. What, its surroundings say. */
export function Spinner() {
  return <span className="spinner" aria-hidden="true" />;
}

/** A place where something will be, so that nothing moves when it comes. lines is how many of them. */
export function Skeleton({ lines = 3, label = 'Loading' }: { lines?: number; label?: string }) {
  return (
    <div className="skeleton" role="status">
      <span className="sr">{label}</span>
      {Array.from({ length: lines }, (_, i) => <span key={i} className="skeleton-line" data-width={i % 3} aria-hidden="true" />)}
    </div>
  );
}
