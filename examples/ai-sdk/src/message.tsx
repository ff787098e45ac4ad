// A message of the AI SDK and its parts: text, reasoning, tools in all their states, questions.
import type { FormEvent } from "react";
import { getToolName, isToolUIPart, type ChatAddToolApproveResponseFunction, type UIMessage } from "ai";

type Part = UIMessage["parts"][number];
type Tool = Extract<Part, { toolCallId: string }>;

interface Question { message?: string; responseSchema?: { properties?: { answer?: { enum?: string[] } } } }

interface Props {
  message: UIMessage;
  onDecision: ChatAddToolApproveResponseFunction;
  /** Answers a question; not given for those that are no longer open. */
  onAnswer?: (question: string, answer: string) => void;
}

export function Message({ message: { id, role, parts }, onDecision, onAnswer }: Props) {
  return (
    <article className={role} data-id={id}>
      {parts.map((part, n) => {
        if (part.type === "text") return <p key={n} className="said">{part.text}</p>;
        if (part.type === "reasoning") return <details key={n} className="reasoning"><summary>Thoughts</summary><div>{part.text}</div></details>;
        if (part.type === "file" && part.mediaType.startsWith("image/")) return <img key={n} src={part.url} alt={part.filename ?? "A picture"} />;
        if (isToolUIPart(part)) return <ToolCard key={part.toolCallId} tool={part} onDecision={onDecision} />;
        if (part.type === "data-question" && onAnswer && isOpen(parts, n)) return <QuestionCard key={n} question={part.data as Question} onAnswer={(answer) => onAnswer(part.id!, answer)} />;
        return null; // steps, state, activities
      })}
    </article>
  );
}

/** Whether a question is still open: nothing has come after it but others. */
const isOpen = (parts: Part[], n: number) => parts.slice(n).every(({ type }) => type === "data-question");

const states = {
  "input-streaming": "is being called",
  "input-available": "is running",
  "approval-requested": "asks for approval",
  "approval-responded": "is decided",
  "output-available": "is done",
  "output-error": "failed",
  "output-denied": "was not allowed",
};

function ToolCard({ tool, onDecision }: { tool: Tool; onDecision: Props["onDecision"] }) {
  const { state, input, toolCallId, approval } = tool;
  const decide = (approved: boolean) => void onDecision({ id: approval!.id, approved });
  return (
    <section className="card" data-call={toolCallId} data-tool={getToolName(tool)} data-state={state}>
      <header><b>{getToolName(tool)}</b> <small>{states[state]}</small></header>
      {input !== undefined && <code>{JSON.stringify(input)}</code>}
      {state === "output-available" && <pre>{typeof tool.output === "string" ? tool.output : JSON.stringify(tool.output)}</pre>}
      {state === "output-error" && <pre className="wrong">{tool.errorText}</pre>}
      {state === "approval-requested" && (
        <div className="ask">
          {approval!.requestReason && <p>{approval!.requestReason}</p>}
          <button className="primary" onClick={() => decide(true)}>Approve</button>
          <button onClick={() => decide(false)}>Deny</button>
        </div>
      )}
    </section>
  );
}

function QuestionCard({ question: { message, responseSchema }, onAnswer }: { question: Question; onAnswer: (answer: string) => void }) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onAnswer(String(new FormData(event.currentTarget).get("answer")));
  };
  const choices = responseSchema?.properties?.answer?.enum;
  return (
    <form className="card question" onSubmit={submit}>
      <p>{message}</p>
      <div className="ask">
        {choices?.map((choice) => <button key={choice} type="button" onClick={() => onAnswer(choice)}>{choice}</button>)
          ?? <><input name="answer" aria-label="Answer" required /> <button className="primary">Answer</button></>}
      </div>
    </form>
  );
}
