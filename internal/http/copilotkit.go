package http

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/threads"
)

// The routes that CopilotKit's frontend expects of a CopilotKit runtime, served by Holdfast
// itself, so that no Node process stands between a page and its durable threads. The paths and
// the shapes are CopilotKit's (react-core 1.74); what they do is what the routes of runs and
// threads do, and they are guarded in the same way. The routes of its thread drawer are in
// copilotkit_threads.go.

// copilotKit serves these routes.
type copilotKit struct {
	agents    *agentAPI
	runs      *runAPI
	threads   Threads
	authorize authorizer
}

// defaultAgent is CopilotKit's name for the agent of a chat that names none.
const defaultAgent = "default"

// copilotKitInfo is what a CopilotKit runtime says about itself.
type copilotKitInfo struct {
	Version string `json:"version"`
	// Mode is always "sse": runs and threads are read over Server-Sent Events.
	Mode             string                     `json:"mode"`
	Agents           map[string]copilotKitAgent `json:"agents"`
	Transcription    bool                       `json:"audioFileTranscriptionEnabled"`
	ThreadEndpoints  copilotKitThreadEndpoints  `json:"threadEndpoints"`
	Suggestions      bool                       `json:"suggestions"`
	A2UI             bool                       `json:"a2uiEnabled"`
	GenerativeUI     bool                       `json:"openGenerativeUIEnabled"`
	TelemetryDisable bool                       `json:"telemetryDisabled"`
}

type copilotKitAgent struct {
	Name         string                 `json:"name"`
	Description  string                 `json:"description"`
	ClassName    string                 `json:"className"`
	Capabilities agentcard.Capabilities `json:"capabilities"`
}

// copilotKitThreadEndpoints says which of the routes of threads there are.
type copilotKitThreadEndpoints struct {
	List             bool `json:"list"`
	Inspect          bool `json:"inspect"`
	Mutations        bool `json:"mutations"`
	RealtimeMetadata bool `json:"realtimeMetadata"`
}

// getInfo is GET /copilotkit/info.
func (k *copilotKit) getInfo(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return k.info(w, r, who, copilotKitThreadEndpoints{List: true, Inspect: true, Mutations: true})
}

func (k *copilotKit) info(
	w http.ResponseWriter, r *http.Request, who holdfast.Principal, endpoints copilotKitThreadEndpoints,
) error {
	if k.agents.agents == nil {
		return errNoAgents()
	}
	info := copilotKitInfo{
		Version:          k.agents.version,
		Mode:             "sse",
		Agents:           map[string]copilotKitAgent{},
		ThreadEndpoints:  endpoints,
		Suggestions:      true,
		TelemetryDisable: true,
	}
	if info.Version == "" {
		info.Version = "development"
	}
	list := k.agents.agents.Agents()
	for i := range list {
		a := &list[i]
		if !k.agents.mayBeShown(r, who, a.Name) {
			continue
		}
		shown := copilotKitAgent{
			Name:         a.Name,
			Description:  a.Description,
			ClassName:    "HoldfastAgent",
			Capabilities: agentcard.CapabilitiesOf(a, k.agents.version),
		}
		info.Agents[a.Name] = shown
		if _, taken := info.Agents[defaultAgent]; i == 0 && !taken {
			shown.Name = defaultAgent
			info.Agents[defaultAgent] = shown // an agent that has the name comes later and replaces it
		}
	}
	exchange.WriteJSON(w, http.StatusOK, info)
	return nil
}

// agent returns the agent that CopilotKit means; "" is the default one, whose
// runs and threads have its own name.
func (k *copilotKit) agent(id string) (string, error) {
	if k.agents.agents == nil {
		return id, nil
	}
	list := k.agents.agents.Agents()
	for i := range list {
		if list[i].Name == id {
			return id, nil
		}
	}
	if id == defaultAgent && len(list) > 0 {
		return list[0].Name, nil
	}
	return "", holdfast.Errorf(codes.AgentNotFound, "There is no agent %q.", id).
		WithHint("GET /copilotkit/info lists them.")
}

// postRun is POST /copilotkit/agent/{agent}/run.
func (k *copilotKit) postRun(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return k.post(w, r, who, false)
}

// postSuggest is POST /copilotkit/agent/{agent}/suggest.
func (k *copilotKit) postSuggest(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return k.post(w, r, who, true)
}

func (k *copilotKit) post(w http.ResponseWriter, r *http.Request, who holdfast.Principal, side bool) error {
	body, err := k.runs.bodies.Read(w, r)
	if err != nil {
		return err
	}
	return k.run(w, r, who, runRequest{agent: param(r, "agent"), body: body, side: side})
}

// run answers a request whose agent has the name that CopilotKit gives it.
func (k *copilotKit) run(w http.ResponseWriter, r *http.Request, who holdfast.Principal, req runRequest) error {
	asJSON, err := wantsJSON(r.Header.Values("Accept"))
	if err != nil {
		return err
	}
	if req.agent, err = k.agent(req.agent); err != nil {
		return err
	}
	req.asJSON, req.chat = asJSON, true
	return k.runs.run(w, r, who, req)
}

// postConnect is POST /copilotkit/agent/{agent}/connect: what a page asks for
// when it opens a thread.
func (k *copilotKit) postConnect(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	body, err := k.runs.bodies.Read(w, r)
	if err != nil {
		return err
	}
	return k.connect(w, r, who, param(r, "agent"), body)
}

// connect only looks, so it never starts or resumes anything, whatever the
// thread does: an empty POST to the route of runs would resume a run that has failed.
func (k *copilotKit) connect(
	w http.ResponseWriter, r *http.Request, who holdfast.Principal, id string, body []byte,
) error {
	if _, err := k.agent(id); err != nil {
		return err
	}
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	_, endTurn, err := k.runs.bodies.Turns.Take(r.Context(), who, len(body))
	if err != nil {
		return err
	}
	defer endTurn()
	in, err := agui.DecodeInput(body)
	if err != nil {
		return err
	}
	exchange.NoteRun(r, in.ThreadID, in.RunID)
	o, err := k.runs.out.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	dialect := agui.DialectOf(in.ProtocolVersion)
	reply, err := asked.attach(o.ctx, k.runs.runs, who, in.ThreadID, dialect)
	switch {
	case err == nil:
	case holdfast.AsError(err).Code == codes.NotFound:
		reply = nothingYet(in)
	default:
		return err
	}
	endTurn()
	k.runs.bodies.LetGo(exchange.RecorderOf(r)) // what follows takes as long as the run
	return k.runs.out.answer(w, r, o, asked, reply)
}

// nothingYet is the stream of a thread that does not exist: a page has opened a new one,
// which is no mistake. It has no snapshot, which would remove what the person has typed
// meanwhile.
func nothingYet(in *agui.RunAgentInput) *agui.Reply {
	run := in.RunID
	if run == "" {
		run = "connect" // the dialect requires one
	}
	started, finished := agui.RunStarted{
		ThreadID: in.ThreadID,
		RunID:    run,
	}, agui.RunFinished{
		ThreadID: in.ThreadID,
		RunID:    run,
	}
	if agui.DialectOf(in.ProtocolVersion) == agui.DialectV1 {
		started.ProtocolVersion, finished.Outcome = agui.ProtocolVersion, &agui.Outcome{Type: agui.OutcomeSuccess}
	}
	return &agui.Reply{ThreadID: in.ThreadID, RunID: run, Frames: func(yield func([]agui.Frame, error) bool) {
		yield([]agui.Frame{{Data: agui.Append(nil, started)}, {Data: agui.Append(nil, finished)}}, nil)
	}}
}

// postStop is POST /copilotkit/agent/{agent}/stop/{thread}.
func (k *copilotKit) postStop(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in copilotKitStop
	if err := k.runs.bodies.ReadObject(w, r, &in, "runId"); err != nil {
		return err
	}
	return k.stop(w, r, who, param(r, "agent"), param(r, "thread"), in.RunID)
}

// copilotKitStop is the body of a stop.
type copilotKitStop struct {
	RunID string `json:"runId"`
}

// copilotKitStopped answers a stop.
type copilotKitStopped struct {
	Stopped bool   `json:"stopped"`
	Message string `json:"message,omitempty"`
}

func (k *copilotKit) stop(
	w http.ResponseWriter, r *http.Request, who holdfast.Principal, id, thread, run string,
) error {
	if _, err := k.agent(id); err != nil {
		return err
	}
	if err := errors.Join(exchange.CheckText("threadId", thread), exchange.CheckText("runId", run)); err != nil {
		return err
	}
	answer := copilotKitStopped{}
	current, err := k.stoppable(r, who, thread, run)
	if err == nil && current != "" {
		err = k.authorize(r.Context(), who, access.Cancel, "")
	}
	if err == nil && current != "" {
		_, err = k.runs.cancel(r.Context(), who, thread, current)
		answer.Stopped = err == nil
	}
	switch {
	case err != nil && holdfast.AsError(err).Code != codes.NotFound:
		return err
	case answer.Stopped:
	case run == "":
		answer.Message = "No run is active on this thread."
	default:
		answer.Message = "This run is not the active one of its thread."
	}
	exchange.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// stopRuns is how many runs, from the newest, a stop that names one is compared with.
const stopRuns = maxLimit

// stoppable returns the run to cancel; "" if there is none. The run that the client names need
// not be the one that runs: an answer is posted under the id of the run that asked, and a
// client that attaches to a run chooses an id of its own, which is stored nowhere. But a run
// that is known and has nothing to do with the current one has ended, and what runs now is
// something else.
func (k *copilotKit) stoppable(r *http.Request, who holdfast.Principal, thread, run string) (string, error) {
	info, err := k.threads.Thread(r.Context(), who, thread)
	if err != nil || info.Status != threads.StatusRunning {
		return "", err
	}
	if run == "" || run == info.Run {
		return info.Run, nil
	}
	list, err := k.threads.Runs(r.Context(), who, thread, "", stopRuns)
	if err != nil {
		return "", err
	}
	ancestor := info.Run // or a run that it continues
	for i := range list {
		switch list[i].ID {
		case run:
			if run != ancestor {
				return "", nil
			}
			return info.Run, nil
		case ancestor:
			ancestor = list[i].Continues
		}
	}
	return info.Run, nil
}

// copilotKitCall is a request in CopilotKit's envelope, by which all of them can be sent
// to one route. Its client does that if it cannot read /info.
type copilotKitCall struct {
	method          string
	agentID, thread string
	body            []byte // a part of the request's
}

// copilotKitCallShape is what an envelope may look like. The content of body is read by the
// method that it is for.
var copilotKitCallShape = &strictjson.Shape{Kind: strictjson.Object, Members: map[string]*strictjson.Shape{
	"method": {Kind: strictjson.String},
	"params": {
		Kind: strictjson.Object,
		Members: map[string]*strictjson.Shape{
			"agentId":  {Kind: strictjson.String},
			"threadId": {Kind: strictjson.String},
		},
	},
	"body": {},
}}

// hintCall says what an envelope has.
const hintCall = `Send {"method": "info", "agent/run", "agent/connect" or "agent/stop", "params": ` +
	`{"agentId", "threadId"}, "body"}.`

// postCall is POST /copilotkit.
func (k *copilotKit) postCall(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	body, err := k.runs.bodies.Read(w, r)
	if err != nil {
		return err
	}
	var call *copilotKitCall
	err = k.runs.bodies.Turns.Decode(r, body, func() error {
		call, err = readCall(body)
		return err
	})
	if err != nil {
		return err
	}
	switch call.method {
	case "info":
		// The routes of threads have no methods here.
		return k.info(w, r, who, copilotKitThreadEndpoints{})
	case "agent/run":
		return k.run(w, r, who, runRequest{agent: call.agentID, body: call.body})
	case "agent/connect":
		if err := k.authorize(r.Context(), who, access.Read, ""); err != nil {
			return err
		}
		return k.connect(w, r, who, call.agentID, call.body)
	case "agent/stop":
		var in copilotKitStop
		if err := exchange.DecodeObject(call.body, &in, "runId"); err != nil {
			return err
		}
		if err := k.authorize(r.Context(), who, access.Read, ""); err != nil {
			return err
		}
		return k.stop(w, r, who, call.agentID, call.thread, in.RunID)
	}
	return exchange.Invalid("method", "This server does not know the method.", hintCall)
}

// readCall reads an envelope.
func readCall(body []byte) (*copilotKitCall, error) {
	if body = bytes.TrimSpace(body); len(body) == 0 || body[0] != '{' {
		return nil, exchange.Invalid("", "The body is not a JSON object.", hintCall)
	}
	var refused *strictjson.Error
	if _, err := strictjson.Check(body, copilotKitCallShape); errors.As(err, &refused) {
		return nil, exchange.Invalid(refused.Place, refused.Message, "%s", refused.Hint)
	}
	call := &copilotKitCall{}
	for name, value := range strictjson.Members(body) {
		switch string(name) {
		case "method":
			call.method = strictjson.Text(value)
		case "params":
			call.readParams(value)
		case "body":
			call.body = value
		}
	}
	return call, nil
}

func (c *copilotKitCall) readParams(params []byte) {
	for name, value := range strictjson.Members(params) {
		switch string(name) {
		case "agentId":
			c.agentID = strictjson.Text(value)
		case "threadId":
			c.thread = strictjson.Text(value)
		}
	}
}
