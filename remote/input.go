package remote

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// An agent is posted a RunAgentInput with the conversation as it stands. Every post is a run
// of its own for the agent, so nothing that a run before has left there counts.

// maxHops bounds through how many servers a request comes to an agent.
const maxHops = 8

// hopPrefix begins the id of a run that a server like this one has asked for, and is followed by the
// number of servers so far.
const hopPrefix = "hop"

// hops returns how many servers a run has come through.
func hops(run string) int {
	number, _, is := strings.Cut(strings.TrimPrefix(run, hopPrefix), "-")
	n, err := strconv.Atoi(number)
	if !is || err != nil || !strings.HasPrefix(run, hopPrefix) {
		return 0
	}
	return n
}

// runID returns the id of the agent's run.
func runID(run string) string {
	return fmt.Sprintf("%s%d-%s", hopPrefix, hops(run)+1, rand.Text())
}

// threadID returns the id of the thread for the agent's run. Ids of threads are chosen by clients, and only
// tell those of one user apart; the agent may tell conversations apart by nothing else. A run beside the
// conversation has one of its own, so that an agent that keeps conversations does not take it for a part.
// It is a UUID, of the version for those that are made of hashes, because LangGraph's server takes no other.
func threadID(at *holdfast.Iteration, thread, run string) string {
	if !at.Side {
		run = ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", at.Principal.Tenant, at.Principal.User, thread,
		at.Incarnation, run))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// input is what is posted.
type input struct {
	body *modelhttp.Body
	run  string
	// known are the ids of the messages in it.
	known map[string]bool
	// own are those of the results of the agent's own calls.
	own map[string]bool
	// asked are the ids of the calls about which a person was asked.
	asked map[string]bool
}

// input writes what is posted. given are people's answers to what the agent has asked.
func (a *Agent) input(req *holdfast.ModelRequest, at holdfast.Iteration, given []agui.ResumeEntry) *input {
	in := &input{
		body:  modelhttp.NewBody(nil),
		run:   runID(req.Run),
		known: map[string]bool{},
		own:   map[string]bool{},
		asked: map[string]bool{},
	}
	messages := in.messages(req)
	if a.onlyNew {
		messages = in.onlyNew(messages)
	}
	tools := make([]agui.Tool, len(req.Tools))
	for i, t := range req.Tools {
		tools[i] = agui.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Metadata: t.Metadata}
	}
	context := req.Context
	if context == nil {
		context = []holdfast.ContextItem{}
	}
	in.body.Member("threadId", threadID(&at, req.Thread, in.run))
	in.body.Member("runId", in.run)
	in.body.Member("protocolVersion", agui.ProtocolVersion)
	state := req.State
	if state == nil {
		state = json.RawMessage("{}")
	}
	in.body.Member("state", state)
	in.body.Open(`"messages":[`)
	for i := range messages {
		in.body.AddRaw(messages[i].AppendJSON)
	}
	in.body.Close("]")
	in.body.Member("tools", tools)
	in.body.Member("context", context)
	in.body.Member("forwardedProps", forwarded(req.ForwardedProps))
	if len(given) > 0 {
		in.body.Member("resume", given)
	}
	return in
}

// asPage is how a server like this one is asked to take the conversation: a run that goes on there after a
// cut is cancelled, and the history follows what is posted.
var asPage = json.RawMessage(`{"chat":true}`)

// forwarded returns the application's parameters, with those for a server like this one in place of those
// for this server.
func forwarded(props json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(props, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	members["holdfast"] = asPage
	raw, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// messages returns the conversation. A message that the agent has made has the id that it gave it,
// so that an agent which keeps the conversation recognizes it.
func (in *input) messages(req *holdfast.ModelRequest) []agui.Message {
	var all []agui.Message
	system := append(append([]string{}, req.Instructions...), req.ClientInstructions...)
	if len(system) > 0 {
		all = append(all, agui.FromDomain(holdfast.Message{
			ID:   "system",
			Role: holdfast.RoleSystem,
			Text: strings.Join(system, "\n\n"),
		}))
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == holdfast.RoleTool && m.Text == agui.TextAsksFirst {
			in.asked[m.CallID] = true
			continue
		}
		if m.Role == holdfast.RoleActivity || m.Role == holdfast.RoleReasoning && m.EncryptedValue == "" {
			continue
		}
		all = append(all, agui.FromDomain(*m))
	}
	for i := range all {
		m := &all[i]
		said := agui.RemoteOf(m.Metadata)
		if said != nil && said.Message != "" && !in.known[said.Message] {
			m.ID = said.Message
		}
		for in.known[m.ID] { // an agent's ids may repeat
			m.ID += "_"
		}
		in.known[m.ID] = true
		in.own[m.ID] = said != nil && m.Role == string(holdfast.RoleTool)
		m.DropMarks()
	}
	return all
}

// onlyNew returns what an agent that keeps the conversation has not seen: what follows its last
// message, without the results of its own calls, or, if nothing is left because it was cut off, what
// it was last asked.
func (in *input) onlyNew(messages []agui.Message) (left []agui.Message) {
	from := len(messages)
	for from > 0 && messages[from-1].Role != string(holdfast.RoleAssistant) {
		from--
	}
	for _, m := range messages[from:] {
		if !in.own[m.ID] {
			left = append(left, m)
		}
	}
	if len(left) > 0 {
		return left
	}
	for from--; from >= 0; from-- {
		if messages[from].Role == string(holdfast.RoleUser) {
			return messages[from : from+1]
		}
	}
	return messages
}
