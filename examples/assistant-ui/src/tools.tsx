// Tools on the page: cards, the approval of calls, other questions, and a tool that runs here.
import { useState } from "react";
import type { Toolkit, ToolCallMessagePartProps } from "@assistant-ui/react";
import { useAgUiInterrupts, useAgUiSubmitInterruptResponses, type AgUiInterrupt } from "@assistant-ui/react-ag-ui";

export function Calculation({ args, result }: ToolCallMessagePartProps) {
  return <p className="card calculation">{args.expression} = <b>{result === undefined ? "…" : String(result)}</b></p>;
}

/** The card of any call. assistant-ui gives it an approval if the server asks for one. */
export function ToolCard({ toolName, toolCallId, argsText, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  const asked = useAgUiInterrupts();
  const [edited, setEdited] = useState<string>();
  const open = approval !== undefined && approval.approved === undefined && !approval.resolution;
  const question = asked.find((each) => each.toolCallId === toolCallId);
  return (
    <div className="card" data-tool={toolName}>
      <b>{toolName}</b> <code>{argsText}</code>
      {result !== undefined && <pre>{typeof result === "string" ? result : JSON.stringify(result)}</pre>}
      {open && (
        <div className="approval">
          <p>{question?.message}</p>
          {edited !== undefined && question ? (
            <EditedCall question={question} text={edited} onChange={setEdited} />
          ) : (
            <>
              <button className="primary" onClick={() => respondToApproval({ approved: true })}>Approve</button>
              {/* The answers to all questions go together, so only a single one is edited. */}
              {asked.length === 1 && <button onClick={() => setEdited(argsText)}>Change…</button>}
              <button onClick={() => respondToApproval({ approved: false })}>Deny</button>
            </>
          )}
        </div>
      )}
    </div>
  );
}

/** Approves a call with other arguments: all of them, as the tool takes them. */
function EditedCall({ question, text, onChange }: { question: AgUiInterrupt; text: string; onChange: (text: string) => void }) {
  const submit = useAgUiSubmitInterruptResponses();
  const [wrong, setWrong] = useState("");
  const approve = async () => {
    try {
      await submit([{ interruptId: question.id, status: "resolved", payload: { approved: true, editedArgs: JSON.parse(text) } }]);
    } catch (error) {
      setWrong(String(error));
    }
  };
  return (
    <>
      <textarea aria-label="Arguments" value={text} onChange={(event) => onChange(event.target.value)} />
      <button className="primary" onClick={approve}>Approve the change</button>
      {wrong && <p className="error">{wrong}</p>}
    </>
  );
}

/** The open questions that are not about approving a call. */
export function Questions() {
  const questions = useAgUiInterrupts();
  const [answers, setAnswers] = useState<Record<string, string>>({});
  const submit = useAgUiSubmitInterruptResponses();
  if (questions.length === 0 || questions.some(({ reason }) => reason === "tool_call")) return null;
  const send = (given: Record<string, string>) => {
    setAnswers(given);
    if (questions.some(({ id }) => given[id] === undefined)) return;
    setAnswers({});
    void submit(questions.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { answer: given[id] } }))).catch(() => {});
  };
  return questions.map(({ id, message, responseSchema }) => {
    const { properties } = (responseSchema ?? {}) as { properties?: { answer?: { enum?: string[] } } };
    const choices = properties?.answer?.enum;
    return (
      <form key={id} className="card question" onSubmit={(event) => {
        event.preventDefault();
        send({ ...answers, [id]: String(new FormData(event.currentTarget).get("answer")) });
      }}>
        <p>{message}</p>
        {choices?.map((choice) => <button key={choice} type="button" onClick={() => send({ ...answers, [id]: choice })}>{choice}</button>)
          ?? <><input name="answer" aria-label="Answer" required /> <button className="primary">Answer</button></>}
      </form>
    );
  });
}

/** The page's own abilities. */
export const toolkit: Toolkit = {
  paint: {
    type: "frontend",
    description: "Changes the color of the page.",
    parameters: { type: "object", properties: { color: { type: "string" } }, required: ["color"] },
    execute: async ({ color }: { color: string }) => {
      document.documentElement.style.setProperty("--accent", color);
      return `The page is ${color} now.`;
    },
    render: ToolCard,
  },
};
