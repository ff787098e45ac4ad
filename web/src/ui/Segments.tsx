import './Segments.css';

/** One of a few ways to see the same thing. */
export function Segments<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: readonly (readonly [value: T, name: string])[]; onChange: (value: T) => void }) {
  return (
    <div className="segments" role="group" aria-label={label}>
      {options.map(([option, name]) => <button key={option} type="button" className="segment" aria-pressed={option === value} onClick={() => onChange(option)}>{name}</button>)}
    </div>
  );
}
