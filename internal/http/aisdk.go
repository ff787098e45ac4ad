package http

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/aisdk"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/threads"
)

// The routes that the Vercel AI SDK's DefaultChatTransport expects of a server, for a page that
// has nothing else: its api is the path of an agent. They do what the routes of runs and
// threads do, and are guarded in the same way.

// aiSDK serves these routes.
type aiSDK struct {
	kit     *copilotKit // which other pages use in the same way
	threads *threadAPI
	now     clock.Shared
}

// agent returns the agent of a path, and the version of the SDK that the page has.
func (a *aiSDK) agent(r *http.Request) (string, aisdk.Version, error) {
	version, known := aisdk.VersionOf(r.URL.Query().Get("sdk"))
	if !known {
		return "", 0, exchange.Invalid("sdk", "This version of the AI SDK is not known here.", `Use "5", "6" or "7".`)
	}
	id := param(r, "agent")
	name, err := a.kit.agent(id)
	if err != nil {
		return "", 0, holdfast.Errorf(codes.AgentNotFound, "There is no agent %q.", id).
			WithHint("GET /agents lists them.")
	}
	return name, version, nil
}

// postChat is POST /ai-sdk/{agent}.
func (a *aiSDK) postChat(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	runs := a.kit.runs
	body, err := runs.bodies.Read(w, r)
	if err != nil {
		return err
	}
	agent, version, err := a.agent(r)
	if err != nil {
		return err
	}
	held, endTurn, err := runs.bodies.Turns.Take(r.Context(), who, len(body))
	if err != nil {
		return err
	}
	defer endTurn()
	r = r.WithContext(held)
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	post, err := aisdk.Decode(body)
	if err != nil {
		return err
	}
	in := post.Input
	if err := a.askAgain(r, who, post); err != nil {
		return err
	}
	in.Traceparent = headers.ParseTraceparent(r.Header.Values(headers.Traceparent))
	o, err := runs.out.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	reply, err := runs.runs.Post(o.ctx, who, agent, in)
	exchange.NoteRun(r, in.ThreadID, in.RunID)
	if err != nil {
		return err
	}
	endTurn()
	runs.bodies.LetGo(exchange.RecorderOf(r)) // what follows takes as long as the run
	return a.answer(w, r, o, reply, aisdk.Options{Version: version, Post: post, After: asked.after.String()})
}

// askAgain finds the message that a page wants another answer to, if it has not sent it.
func (a *aiSDK) askAgain(r *http.Request, who holdfast.Principal, post *aisdk.Post) error {
	if !post.Asks {
		return nil
	}
	if err := a.kit.authorize(r.Context(), who, access.Read, ""); err != nil {
		return err
	}
	messages, err := a.kit.threads.Messages(r.Context(), who, post.Input.ThreadID)
	if err != nil {
		return err
	}
	m, found, err := aisdk.UserMessage(messages, post.Answer)
	if found {
		post.AskAgain(m)
	}
	return err
}

// answer sends a reply as a UI message stream.
func (a *aiSDK) answer(w http.ResponseWriter, r *http.Request, of *opened, reply *agui.Reply, o aisdk.Options) error {
	if reply != nil {
		w.Header().Set(aisdk.Header, aisdk.HeaderValue)
		reply = aisdk.Encode(reply, o)
	}
	return a.kit.runs.out.answer(w, r, of, cursors{}, reply)
}

// justEnded is for how long an answer that is complete is still shown to a page that resumes it. Between its two
// requests, for the history and for the stream, the answer may have been completed, and the page has a part of it.
const justEnded = 10 * time.Second

// resumable reports whether there is an answer to show to a page that is loaded. The older clients would show one
// that they have twice.
func (a *aiSDK) resumable(info *threads.Info, version aisdk.Version) bool {
	whole := info.Outcome == holdfast.OutcomeSuccess || info.Outcome == holdfast.OutcomeInterrupt
	return info.Status == threads.StatusRunning ||
		version >= aisdk.V7 && whole && a.now().Age(info.UpdatedAt) < justEnded
}

// getChatStream is GET /ai-sdk/{agent}/{thread}/stream: what a page asks for when it is loaded.
// It shows the answer that is being written, or has just been, from its beginning. Where none is, there is nothing
// to resume, whether the chat exists or not.
func (a *aiSDK) getChatStream(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	_, version, err := a.agent(r)
	if err != nil {
		return err
	}
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	thread, options := param(r, "thread"), aisdk.Options{Version: version, After: asked.after.String()}
	info, err := a.chat(r, who, thread)
	if err != nil {
		return err
	}
	options.Rest = options.After != ""
	if info.Run == "" || !options.Rest && !a.resumable(info, version) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	runs := a.kit.runs
	o, err := runs.out.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	var reply *agui.Reply
	if options.Rest {
		// The rest is made of what the client has, too.
		reply, err = runs.runs.Events(o.ctx, who, thread, info.Run, cursors{}.after, agui.DialectV1)
	} else {
		reply, err = runs.runs.Attach(o.ctx, who, thread, agui.DialectV1)
	}
	if err != nil {
		return err
	}
	return a.answer(w, r, o, reply, options)
}

// chat returns what is known of a chat; one that nobody has written in yet is idle.
func (a *aiSDK) chat(r *http.Request, who holdfast.Principal, thread string) (*threads.Info, error) {
	if err := exchange.CheckText("id", thread); err != nil {
		return nil, err
	}
	info, err := a.kit.threads.Thread(r.Context(), who, thread)
	if err != nil && holdfast.AsError(err).Code == codes.NotFound {
		return &threads.Info{ID: thread, Status: threads.StatusIdle}, nil
	}
	return info, err
}

// postChatStop is POST /ai-sdk/{agent}/{thread}/stop.
func (a *aiSDK) postChatStop(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in copilotKitStop
	if err := a.kit.runs.bodies.ReadObject(w, r, &in, "runId"); err != nil {
		return err
	}
	agent, _, err := a.agent(r)
	if err != nil {
		return err
	}
	return a.kit.stop(w, r, who, agent, param(r, "thread"), in.RunID)
}

// getChat is GET /ai-sdk/{agent}/{thread}: the history with which a page begins.
func (a *aiSDK) getChat(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if _, _, err := a.agent(r); err != nil {
		return err
	}
	info, err := a.chat(r, who, param(r, "thread"))
	if err != nil {
		return err
	}
	if info.Run == "" && info.Agent == "" {
		exchange.WriteJSON(w, http.StatusOK, map[string]any{
			"id": info.ID, "status": info.Status, "messages": []any{},
		})
		return nil
	}
	messages, err := a.kit.threads.Messages(r.Context(), who, info.ID)
	if err != nil {
		return err
	}
	before, err := encoded(struct {
		ID     string         `json:"id"`
		Status threads.Status `json:"status"`
	}{info.ID, info.Status})
	if err != nil {
		return err
	}
	return writeMessages(w, r, a.threads.log, strings.TrimSuffix(before, "}\n")+",",
		aisdk.History(messages, info.Interrupts), "}\n")
}
