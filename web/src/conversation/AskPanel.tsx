// The open questions of a thread as forms. AG-UI requires all answers in one request, so they
// are collected until no question is open.
import { useEffect, useId, useMemo, useRef, useState, type FormEvent, type ReactNode } from 'react';
import type { Answer } from '../api/actions.ts';
import { fields, list, text } from '../log/json.ts';
import type { CallItem, Interrupt } from '../log/view.ts';
import { Doubt, isDoubt } from '../durable/Doubt.tsx';
import { Badge } from '../ui/Badge.tsx';
import { Button, IconButton } from '../ui/Button.tsx';
import { failureOf, type Failure } from '../ui/ErrorCard.tsx';
import { nameOf } from '../ui/draft.ts';
import { ClockIcon, EditIcon, ExternalIcon, QuestionIcon, TerminalIcon } from '../ui/icons.tsx';
import { JsonTree } from '../ui/JsonTree.tsx';
import { SchemaForm, useSchemaForm, type FormState } from '../ui/SchemaForm.tsx';
import { useNow, usePast } from '../ui/Time.tsx';
import { bytes, duration } from '../ui/time.ts';
import { holds, loginUrl, readQuestion, spokenWithNo, subjectOf, type Question, type Reply } from './ask.ts';
import './Ask.css';
import { treeOf, until } from './format.ts';

export interface AskPanelProps {
  interrupts: readonly Interrupt[];
  /** The calls that questions may be about. */
  calls: readonly CallItem[];
  /** The schema of a tool's arguments, if it is known. */
  parametersOf?: (tool: string) => unknown;
  /** Sends all answers; rejects if the server refuses them. */
  onAnswer: (answers: readonly Answer[]) => Promise<void>;
  /** Copies an answer as a command for a shell. */
  onCurl?: (answers: readonly Answer[]) => void;
  /** A run is under way: nothing can be answered now. */
  busy?: boolean;
  /** The level of the questions' headings. */
  heading?: 2 | 3;
}

/** The details of a refusal. */
const violations = (error: unknown) => list(fields(fields(error)['details'])['violations']);

/** The server's objections to an answer. */
function violationsOf(error: unknown, id: string): string[] {
  return violations(error).map(fields).filter((v) => v['interruptId'] === id).map((v) => text(v['message'])).filter(Boolean);
}

export function AskPanel({ interrupts, calls, parametersOf, onAnswer, onCurl, busy = false, heading = 2 }: AskPanelProps) {
  const [answers, setAnswers] = useState<ReadonlyMap<string, Answer>>(new Map());
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const box = useRef<HTMLDivElement>(null);
  const open = interrupts.filter((i) => !answers.has(i.id));
  const send = async (all: ReadonlyMap<string, Answer>) => {
    setSending(true);
    setError(null);
    try {
      await onAnswer(interrupts.map((i) => all.get(i.id)).filter((a) => a !== undefined));
    } catch (err) {
      // The answers stay in their forms.
      setError(err);
      setAnswers(new Map());
    } finally {
      setSending(false);
    }
  };
  const answer = (given: Answer) => {
    const all = new Map(answers).set(given.interruptId, given);
    setAnswers(all);
    if (interrupts.every((i) => all.has(i.id))) void send(all);
    // The pressed button is gone, so the next question has the focus, unless it was given elsewhere.
    else requestAnimationFrame(() => {
      const at = document.activeElement;
      if (at && at !== document.body && !at.closest('[data-answered]')) return;
      box.current?.querySelector<HTMLElement>('.ask-card:not([data-answered]) :is(input, textarea, select, .ask-reply)')?.focus();
    });
  };
  const failure: Failure | null = error === null ? null : failureOf(error);
  const own = violations(error).length > 0;
  return (
    <div ref={box} className="ask" data-count={interrupts.length}>
      {interrupts.length > 1 && <p className="ask-progress small soft">{answers.size} of {interrupts.length} answered. They are sent together.</p>}
      {failure && !own && <p className="field-error" role="alert">{failure.message}{failure.hint && ` ${failure.hint}`}</p>}
      {interrupts.map((interrupt) => (
        <AskCard
          key={interrupt.id} interrupt={interrupt} call={calls.find((c) => c.id === interrupt.toolCallId)} parametersOf={parametersOf} heading={heading}
          busy={busy || sending} answered={answers.get(interrupt.id)} problems={violationsOf(error, interrupt.id)} onAnswer={answer}
          onCurl={onCurl && ((own) => onCurl(interrupts.map((i) => (i.id === interrupt.id ? own : answers.get(i.id) ?? { interruptId: i.id, status: 'cancelled' }))))}
          onChange={() => setAnswers(new Map([...answers].filter(([id]) => id !== interrupt.id)))}
        />
      ))}
      <span className="sr" role="status">{open.length > 0 && answers.size > 0 ? `${open.length} more to answer` : ''}</span>
    </div>
  );
}

function Expiry({ at }: { at: string }) {
  const now = useNow('second');
  const left = Date.parse(at) - now;
  if (Number.isNaN(left)) return null;
  if (left <= 0) return <Badge tone="bad">expired</Badge>;
  return <Badge tone={left < 60_000 ? 'bad' : 'wait'} title={`Open until ${new Date(at).toLocaleString('en')}`}><ClockIcon />{left < 3_600_000 ? `${duration(Math.ceil(left / 1000) * 1000)} left` : `until ${until(at)}`}</Badge>;
}

interface CardProps {
  interrupt: Interrupt;
  call: CallItem | undefined;
  parametersOf?: (tool: string) => unknown;
  heading: 2 | 3;
  busy: boolean;
  answered: Answer | undefined;
  problems: readonly string[];
  onAnswer: (answer: Answer) => void;
  onCurl: ((answer: Answer) => void) | undefined;
  onChange: () => void;
}

function AskCard(props: CardProps) {
  const { interrupt, call, answered, busy, heading, onChange } = props;
  const id = useId();
  const subject = subjectOf(interrupt, call);
  const Heading = heading === 2 ? 'h2' : 'h3';
  return (
    // No landmark: there may be many with the same question.
    <section className="ask-card" role="group" aria-labelledby={id} data-answered={answered !== undefined || undefined}>
      <header className="ask-head">
        <QuestionIcon />
        <Heading id={id} className="ask-title">{subject.title}</Heading>
        {interrupt.expiresAt && <Expiry at={interrupt.expiresAt} />}
      </header>
      {/* The form stays, so that what was written is there if the answers are refused. */}
      <div hidden={answered !== undefined}>{isDoubt(interrupt) && <Doubt />}<AskForm {...props} /></div>
      {answered !== undefined && <p className="ask-answered soft">{answered.status === 'cancelled' ? 'Declined.' : 'Answered.'} <Button size="small" kind="quiet" disabled={busy} onClick={onChange}>Change</Button></p>}
    </section>
  );
}

/** The arguments of a call while a person changes them. */
function useEdits(args: string, schema: unknown): { form: FormState; editing: boolean; begin: () => void; end: () => void; initial: unknown } {
  const [editing, setEditing] = useState(false);
  const initial = useMemo(() => treeOf(args) ?? {}, [args]);
  const form = useSchemaForm({});
  const begin = () => {
    form.begin(holds(schema, initial) ? schema : {}, initial);
    setEditing(true);
  };
  return { form, editing, begin, end: () => setEditing(false), initial };
}

function Happened({ interrupt }: { interrupt: Interrupt }) {
  const happened = list(interrupt.metadata?.['happened']);
  if (happened.length === 0) return null;
  return <section className="ask-happened" aria-label="Already happened"><p className="small soft">Already happened, and not undone:</p><JsonTree value={happened} label="Already happened" depth={2} /></section>;
}

function Subject({ question, call, editing }: { question: Question; call: CallItem | undefined; editing: boolean }) {
  const { tool, args, hiddenBytes, rule, title } = subjectOf(question.interrupt, call);
  const tree = useMemo(() => treeOf(args), [args]);
  if (!question.approves && question.interrupt.metadata?.['tool'] === undefined) return null;
  return (
    <div className="ask-subject">
      {tool && (rule || !title.includes(tool)) && <p><code className="ask-tool">{tool}</code>{rule && <span className="soft"> is asked about because of the rule “{rule}”</span>}</p>}
      {!editing && (tree !== undefined ? <JsonTree value={tree} label="Arguments" depth={2} /> : args && <pre tabIndex={0} role="group" aria-label="Arguments">{args}</pre>)}
      {hiddenBytes > 0 && !call?.args && <p className="soft">Its arguments, {bytes(hiddenBytes)}, are not shown here.</p>}
    </div>
  );
}

function AskForm({ interrupt, call, parametersOf, busy, problems, onAnswer, onCurl }: CardProps) {
  const [question] = useState(() => readQuestion(interrupt));
  const { tool, args } = subjectOf(interrupt, call);
  const form = useSchemaForm(question.rest ?? { type: 'object', properties: { _: { const: '' } } });
  const edits = useEdits(call?.args || args, parametersOf?.(tool));
  const expired = usePast(interrupt.expiresAt);
  const login = loginUrl(interrupt);
  const resolved = (payload: unknown): Answer => ({ interruptId: interrupt.id, status: 'resolved', payload });
  /** The answer that a button gives; undefined if the form is not whole yet. */
  const answerOf = ({ value }: Reply): Answer | undefined => {
    if (question.member === '') return resolved(value);
    const no = value === false;
    const edited = edits.editing && !no ? edits.form.read() : undefined;
    if (edited?.problems) return undefined;
    const said = question.rest === undefined ? { value: {} } : no ? { value: spokenWithNo(form.field, form.draft) } : form.read();
    if (said.problems) return undefined;
    // A value that nobody has changed is not sent again: JSON in a browser cannot hold every number.
    const changed = edited !== undefined && JSON.stringify(edited.value) !== JSON.stringify(edits.initial) ? { editedArgs: edited.value } : {};
    return resolved({ ...(said.value as object), [question.member]: value, ...changed });
  };
  /** The form's value, without a button. */
  const written = (): Answer | undefined => {
    const said = form.read();
    return said.problems ? undefined : resolved(said.value);
  };
  const give = (answer: Answer | undefined) => answer && onAnswer(answer);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    // Enter in a field chooses no button.
    if (question.replies.length === 0 && !busy && !expired) give(written());
  };
  const [first] = question.replies;
  const no = question.replies.find((r) => r.value === false);
  const copy = () => {
    const answer = first ? answerOf(first) : written();
    if (answer) onCurl?.(answer);
  };
  return (
    <form className="ask-form" onSubmit={submit} noValidate>
      {login && <p><a className="button" href={login} target="_blank" rel="noopener noreferrer"><ExternalIcon />Log in</a></p>}
      <Subject question={question} call={call} editing={edits.editing} />
      <Happened interrupt={interrupt} />
      {edits.editing && <div className="ask-edits"><SchemaForm form={edits.form} name="arguments" /></div>}
      {question.rest !== undefined && <Rest question={question} form={form} title={interrupt.message} />}
      {problems.map((p) => <p key={p} className="field-error" role="alert">{p}</p>)}
      {expired && <p className="soft">This question has expired: it can only be declined now.</p>}
      {!expired && no && <p className="small soft">“{no.text}” is an answer. Declining gives none, and the agent is told so.</p>}
      <div className="row wrap ask-buttons">
        {question.replies.map((r) => (
          <Button key={r.text} kind={r.value === false ? 'default' : question.replies.length === 2 && r.value === true ? 'primary' : 'default'} className="ask-reply" disabled={expired} busy={busy} onClick={() => give(answerOf(r))}>
            {r.value === true && edits.editing ? `${r.text} with these arguments` : r.text}
          </Button>
        ))}
        {question.replies.length === 0 && <Button type="submit" kind="primary" disabled={expired} busy={busy}>Answer</Button>}
        {question.editable && (edits.editing
          ? <Button kind="quiet" disabled={busy} onClick={edits.end}>Keep the arguments</Button>
          : <Button kind="quiet" icon={<EditIcon />} disabled={busy || expired} onClick={edits.begin}>Edit arguments</Button>)}
        <span className="grow" />
        {onCurl && !expired && <IconButton label={first ? `Copy “${first.text}” as curl` : 'Copy this answer as curl'} onClick={copy}><TerminalIcon /></IconButton>}
        <Button kind="quiet" disabled={busy} onClick={() => onAnswer({ interruptId: interrupt.id, status: 'cancelled' })}>Decline to answer</Button>
      </div>
    </form>
  );
}

/** The fields beside the buttons. Those of an approval are folded: mostly a yes or a no is all. */
function Rest({ question, form, title }: { question: Question; form: FormState; title?: string }): ReactNode {
  // A single field whose words repeat the question needs no label.
  const quiet = question.replies.length === 0 && (form.field.kind !== 'object' || form.field.members.length === 1) && title !== undefined && title !== '';
  if (question.replies.length === 0) return <SingleOrForm form={form} quiet={quiet} />;
  return <details className="ask-more"><summary>{form.field.kind === 'object' ? form.field.members.map((m, i) => (i === 0 ? nameOf(m.name, m.field) : nameOf(m.name, m.field).toLowerCase())).join(', ') : 'More'} <span className="faint">optional</span></summary><SchemaForm form={form} /></details>;
}

function SingleOrForm({ form, quiet }: { form: FormState; quiet: boolean }): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [form.reads]);
  return <div ref={box} className={quiet ? 'ask-single' : undefined}><SchemaForm form={form} quiet={quiet && form.field.kind !== 'object'} /></div>;
}
