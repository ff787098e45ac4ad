// The conversation: messages with their actions, open questions, and the field for the next one.
import type { FormEvent } from "react";
import {
  ActionBarPrimitive, AuiIf, BranchPickerPrimitive, ComposerPrimitive, ErrorPrimitive, MessagePrimitive, ThreadPrimitive, useAui, useAuiState,
} from "@assistant-ui/react";
import { useAgUiInterrupts, useAgUiSteerAway } from "@assistant-ui/react-ag-ui";
import { Calculation, Questions, ToolCard } from "./tools";

const words = ["calculate 6 * 7", "plan 4 steps", "ask me to choose red, blue", 'use paint {"color": "teal"}'];

function Branches() {
  return (
    <BranchPickerPrimitive.Root hideWhenSingleBranch className="branches">
      <BranchPickerPrimitive.Previous aria-label="Previous version">‹</BranchPickerPrimitive.Previous>
      <BranchPickerPrimitive.Number />/<BranchPickerPrimitive.Count />
      <BranchPickerPrimitive.Next aria-label="Next version">›</BranchPickerPrimitive.Next>
    </BranchPickerPrimitive.Root>
  );
}

function UserMessage() {
  return (
    <MessagePrimitive.Root className="user">
      <div className="said"><MessagePrimitive.Parts /></div>
      <ActionBarPrimitive.Root hideWhenRunning className="actions">
        <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
        <Branches />
      </ActionBarPrimitive.Root>
    </MessagePrimitive.Root>
  );
}

function EditedMessage() {
  return (
    <ComposerPrimitive.Root className="edited">
      <ComposerPrimitive.Input aria-label="Edited message" />
      <ComposerPrimitive.Cancel>Cancel</ComposerPrimitive.Cancel>
      <ComposerPrimitive.Send>Send again</ComposerPrimitive.Send>
    </ComposerPrimitive.Root>
  );
}

const Reasoning = ({ text }: { text: string }) => <details><summary>Thoughts</summary>{text}</details>;
const parts = { Reasoning, tools: { by_name: { calculate: Calculation }, Fallback: ToolCard } };

/** An answer with tools has several messages; all of them are made again. */
function AnswerAgain() {
  const aui = useAui();
  const again = () => {
    const question = aui.thread().getState().messages.findLast(({ role }) => role === "user");
    if (question) aui.thread().startRun({ parentId: question.id });
  };
  return <div className="actions"><button onClick={again}>Answer again</button></div>;
}

function AssistantMessage() {
  // A process that dies in mid-answer leaves an empty message behind.
  if (useAuiState(({ message }) => message.parts.length === 0 && message.status?.type === "complete")) return null;
  return (
    <MessagePrimitive.Root className="assistant">
      <div className="said"><MessagePrimitive.Parts components={parts} /></div>
      <MessagePrimitive.Error>
        <ErrorPrimitive.Root className="error"><ErrorPrimitive.Message /></ErrorPrimitive.Root>
      </MessagePrimitive.Error>
      <AuiIf condition={({ thread, message }) => !thread.isRunning && message.isLast && message.status?.type !== "requires-action"}>
        <AnswerAgain />
      </AuiIf>
      <Branches />
    </MessagePrimitive.Root>
  );
}

const messages = { UserMessage, UserEditComposer: EditedMessage, AssistantMessage };

function Composer() {
  const aui = useAui();
  const asked = useAgUiInterrupts().length > 0;
  const steerAway = useAgUiSteerAway();
  // While a question is open, a message declines it.
  const decline = (event: FormEvent) => {
    const { text } = aui.composer().getState();
    if (!asked || text.trim() === "") return;
    event.preventDefault();
    aui.composer().setText("");
    void steerAway(text).catch(() => {}); // the message shows what went wrong
  };
  return (
    <ComposerPrimitive.Root className="composer" onSubmit={decline}>
      <ComposerPrimitive.Input placeholder={asked ? "Answer above, or say something else" : "Say something"} aria-label="Message" rows={1} />
      <AuiIf condition={({ thread }) => thread.isRunning}>
        <ComposerPrimitive.Cancel className="primary">Stop</ComposerPrimitive.Cancel>
      </AuiIf>
      <AuiIf condition={({ thread }) => !thread.isRunning}>
        <button type="submit" className="primary">Send</button>
      </AuiIf>
    </ComposerPrimitive.Root>
  );
}

export function Chat() {
  return (
    <ThreadPrimitive.Root className="thread">
      <ThreadPrimitive.Viewport className="messages">
        <AuiIf condition={({ thread }) => thread.isEmpty}>
          <div className="welcome">
            <h1>What shall we do?</h1>
            {words.map((prompt) => <ThreadPrimitive.Suggestion key={prompt} prompt={prompt} send>{prompt}</ThreadPrimitive.Suggestion>)}
          </div>
        </AuiIf>
        <ThreadPrimitive.Messages components={messages} />
        <Questions />
      </ThreadPrimitive.Viewport>
      <Composer />
    </ThreadPrimitive.Root>
  );
}
