// A form for a JSON Schema: questions to a person, arguments of a tool. It says what is wrong
// beside the field, and only after somebody has tried to send it.
import { useId, useState, type ReactNode } from 'react';
import { Button, IconButton } from './Button.tsx';
import { draftOf, nameOf, readDraft, row, type Draft, type Problems, type Reading } from './draft.ts';
import { Checkbox, Select, TextArea, TextField } from './Field.tsx';
import { CloseIcon, PlusIcon } from './icons.tsx';
import { fewChoices, readSchema, spaced, variantName, type SchemaField } from './schema.ts';
import './SchemaForm.css';

const none: Problems = new Map();

export interface FormState {
  readonly field: SchemaField;
  readonly draft: Draft;
  readonly problems: Problems;
  set(draft: Draft): void;
  /** The form's value; if that is not whole, the form shows what is missing. */
  read(): Reading;
  /** How often that was asked: then, and not while somebody writes, the focus goes to what is missing. */
  readonly reads: number;
  /** Starts again, with another schema and value. */
  begin(schema: unknown, value?: unknown): void;
  /** Shows problems that somebody else has found, by path: "/address/zip". */
  show(problems: Problems): void;
}

/** The state of a form: what was filled in. value is in it at first, whatever the schema says. */
export function useSchemaForm(schema: unknown, value?: unknown): FormState {
  const [field, setField] = useState(() => readSchema(schema));
  const [draft, setDraft] = useState<Draft>(() => draftOf(field, value));
  const [problems, setProblems] = useState<Problems>(none);
  const [reads, setReads] = useState(0);
  return {
    field, draft, problems, reads,
    begin(another, its) {
      const next = readSchema(another);
      setField(next);
      setDraft(draftOf(next, its));
      setProblems(none);
    },
    set(next) {
      setDraft(next);
      // Once something was wrong, it goes away while it is mended.
      if (problems.size > 0) setProblems(readDraft(field, next).problems ?? none);
    },
    read() {
      const reading = readDraft(field, draft);
      setProblems(reading.problems ?? none);
      setReads((n) => n + 1);
      return reading;
    },
    show: setProblems,
  };
}

interface Shown {
  name: string;
  required: boolean;
  path: string;
  problems: Problems;
  /** The name is only for screen readers. */
  quiet?: boolean;
  onChange: (draft: Draft) => void;
}

type Of<K extends SchemaField['kind']> = Extract<SchemaField, { kind: K }>;
type Props<K extends SchemaField['kind']> = Shown & { field: Of<K>; draft: Draft };

const labelOf = ({ name, required, field, path }: { name: string; required: boolean; field: SchemaField; path: string }): ReactNode => (
  <>{nameOf(name, field)}{!required && path !== '' && <span className="schema-optional"> optional</span>}</>
);

const common = (props: Shown & { field: SchemaField }) => ({
  label: labelOf(props), about: props.field.about || undefined, error: props.problems.get(props.path), quiet: props.quiet, required: false, 'aria-required': props.required || undefined,
});

const inputTypes = new Map([['email', 'email'], ['uri', 'url'], ['url', 'url'], ['date', 'date'], ['time', 'time'], ['date-time', 'datetime-local'], ['password', 'password']]);

function TextPart(props: Props<'text'>) {
  const { field, draft, onChange, path, required } = props;
  const value = typeof draft === 'string' ? draft : '';
  const type = inputTypes.get(field.format);
  if (type !== undefined) return <TextField {...common(props)} type={type} value={value} onChange={onChange} />;
  // The only thing that is asked for has room for more than a word.
  const rows = field.long ? 4 : path === '' || (required && field.longest > 60) ? 2 : 1;
  return <TextArea {...common(props)} rows={rows} value={value} onChange={onChange} />;
}

function NumberPart(props: Props<'number'>) {
  const { field, draft, onChange } = props;
  const limits = [
    field.least > -Infinity ? `at least ${field.least}` : field.above > -Infinity ? `more than ${field.above}` : '',
    field.most < Infinity ? `at most ${field.most}` : field.below < Infinity ? `less than ${field.below}` : '',
  ].filter(Boolean).join(', ');
  const about = [field.about, limits && `${spaced(limits)}.`].filter(Boolean).join(' ');
  return <TextField {...common(props)} about={about || undefined} inputMode={field.whole ? 'numeric' : 'decimal'} className="num schema-number" value={typeof draft === 'string' ? draft : ''} onChange={onChange} />;
}

function Group({ legend, about, error, quiet, children }: { legend: ReactNode; about?: string; error?: string; quiet?: boolean; children: ReactNode }) {
  const id = useId();
  const described = [about && `${id}-about`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <fieldset className="schema-group" aria-describedby={described || undefined}>
      <legend className={quiet ? 'sr' : 'field-label'}>{legend}</legend>
      {about && <p id={`${id}-about`} className="field-about">{about}</p>}
      {children}
      {error && <p id={`${id}-error`} className="field-error">{error}</p>}
    </fieldset>
  );
}

const groupOf = (props: Shown & { field: SchemaField }) => ({ legend: labelOf(props), about: props.field.about || undefined, error: props.problems.get(props.path), quiet: props.quiet });

function ChoicePart(props: Props<'choice'>) {
  const { field, draft, onChange, required } = props;
  const name = useId();
  if (field.choices.length > fewChoices) {
    const options = [...(required && draft !== undefined ? [] : [['', required ? 'Choose…' : 'none'] as const]), ...field.choices.map((c, i) => [String(i), c.text] as const)];
    return <Select {...common(props)} value={typeof draft === 'number' ? String(draft) : ''} options={options} onChange={(at) => onChange(at === '' ? undefined : Number(at))} />;
  }
  return (
    <Group {...groupOf(props)}>
      <div className="schema-choices">
        {field.choices.map((choice, i) => (
          <label key={i} className="schema-choice">
            <input type="radio" name={name} checked={draft === i} onChange={() => onChange(i)} onClick={() => !required && draft === i && onChange(undefined)} />
            {choice.text}
          </label>
        ))}
      </div>
    </Group>
  );
}

function SeveralPart(props: Props<'several'>) {
  const { field, draft, onChange } = props;
  const ticked = Array.isArray(draft) ? (draft as readonly boolean[]) : [];
  return (
    <Group {...groupOf(props)}>
      <div className="schema-choices">
        {field.choices.map((choice, i) => (
          <label key={i} className="schema-choice">
            <input type="checkbox" checked={ticked[i] === true} onChange={(e) => onChange(field.choices.map((_, at) => (at === i ? e.target.checked : ticked[at] === true)))} />
            {choice.text}
          </label>
        ))}
      </div>
    </Group>
  );
}

function ObjectPart(props: Props<'object'>) {
  const { field, draft, problems, path, onChange } = props;
  const members = typeof draft === 'object' && 'members' in draft ? draft.members : {};
  const parts = field.members.filter((m) => m.field.kind !== 'constant').map((m) => (
    <Part key={m.name} name={m.name} field={m.field} required={m.required} path={`${path}/${m.name}`} problems={problems} draft={members[m.name]} onChange={(next) => onChange({ members: { ...members, [m.name]: next } })} />
  ));
  if (path === '' || props.quiet) return <div className="schema-members">{parts}</div>;
  return <Group {...groupOf(props)}><div className="schema-members schema-inner">{parts}</div></Group>;
}

function ListPart(props: Props<'list'>) {
  const { field, draft, problems, path, name, onChange } = props;
  const rows = typeof draft === 'object' && 'rows' in draft ? draft.rows : [];
  const one = nameOf(name, field).replace(/s$/, '').toLowerCase() || 'entry';
  return (
    <Group {...groupOf(props)}>
      <div className="schema-inner">
        {rows.map((each, i) => (
          <div key={each.id} className="schema-row">
            <Part name={`${one} ${i + 1}`} quiet={field.item.kind !== 'object'} required path={`${path}/${i}`} field={field.item} problems={problems} draft={each.draft} onChange={(next) => onChange({ rows: rows.map((r) => (r === each ? { ...r, draft: next } : r)) })} />
            <IconButton size="small" label={`Remove ${one} ${i + 1}`} onClick={() => onChange({ rows: rows.filter((r) => r !== each) })}><CloseIcon /></IconButton>
          </div>
        ))}
        {rows.length < field.most && <Button size="small" icon={<PlusIcon />} onClick={() => onChange({ rows: [...rows, row(draftOf(field.item))] })}>Add {one}</Button>}
      </div>
    </Group>
  );
}

function VariantsPart(props: Props<'variants'>) {
  const { field, draft, problems, path, onChange } = props;
  const now = typeof draft === 'object' && 'chosen' in draft ? draft : { chosen: 0, drafts: [] };
  const variant = field.variants[now.chosen];
  return (
    <Group {...groupOf(props)}>
      <Select label="Kind" quiet value={String(now.chosen)} options={field.variants.map((v, i) => [String(i), variantName(v, i)] as const)} onChange={(at) => onChange({ ...now, chosen: Number(at) })} />
      {variant !== undefined && (
        <div className="schema-inner">
          <Part key={now.chosen} name={variantName(variant, now.chosen)} quiet required path={path} field={{ ...variant, about: '' } as SchemaField} problems={problems} draft={now.drafts[now.chosen]} onChange={(next) => onChange({ ...now, drafts: now.drafts.map((d, i) => (i === now.chosen ? next : d)) })} />
        </div>
      )}
    </Group>
  );
}

/** One field of a form. */
export function Part(props: Shown & { field: SchemaField; draft: Draft }) {
  const { field, draft, onChange } = props;
  switch (field.kind) {
    case 'text': return <TextPart {...props} field={field} />;
    case 'number': return <NumberPart {...props} field={field} />;
    case 'boolean': return <Checkbox checked={draft === true} onChange={onChange} about={field.title && field.about ? field.about : undefined}>{field.title || field.about || nameOf(props.name, field)}</Checkbox>;
    case 'choice': return <ChoicePart {...props} field={field} />;
    case 'several': return <SeveralPart {...props} field={field} />;
    case 'object': return <ObjectPart {...props} field={field} />;
    case 'list': return <ListPart {...props} field={field} />;
    case 'variants': return <VariantsPart {...props} field={field} />;
    case 'constant': return null;
    case 'json': return <TextArea {...common(props)} rows={4} className="mono" spellCheck={false} placeholder="JSON" value={typeof draft === 'string' ? draft : ''} onChange={onChange} />;
  }
}

/** The fields of a form; buttons are the surroundings'. name is what a form of a single field asks for. */
export function SchemaForm({ form, name = '', quiet = false }: { form: FormState; name?: string; quiet?: boolean }) {
  return (
    <div className="schema-form">
      <Part name={name} quiet={quiet} required path="" field={form.field} draft={form.draft} problems={form.problems} onChange={form.set} />
    </div>
  );
}
