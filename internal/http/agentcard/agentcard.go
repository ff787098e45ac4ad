// Package agentcard is what the server says of an agent: in a list of agents, and in the form of
// AG-UI's capabilities. It is computed from facts of the agent's configuration, so that the
// server claims only what it serves.
package agentcard

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
)

// How a client says where it stands in a stream. LastEventHeader has the cursor of the last
// event that it received. CursorsHeader asks for cursors in the events; InMetadata is its only
// value.
const (
	LastEventHeader = "Last-Event-ID"
	CursorsHeader   = "Holdfast-Cursors"
	InMetadata      = "metadata"
)

// Info is what the server knows about an agent: facts of its configuration. The
// capabilities are computed from them, so that the server claims only what it serves.
type Info struct {
	Name        string
	Description string
	// Revision is a short hash of what shapes the agent's runs.
	Revision string
	Tools    []holdfast.ToolSpec
	// Models are the names of its models, in the order in which they are asked.
	Models []string
	// Middleware are the names of the agent's middleware, the outermost first.
	Middleware []string
	// ParallelTools is how many calls of one answer may run at the same time.
	ParallelTools int
	// MaxIterations bounds a run between two requests; 0 means no bound.
	MaxIterations int
	// Persistent: threads outlive the process.
	Persistent bool
	// Scripted: its model is the one for trying out.
	Scripted bool
	// Approvals is who answers its questions.
	Approvals access.Role
	// ToolTimeout bounds a call of a tool that has no timeout of its own.
	ToolTimeout time.Duration
	// Formed: answers are JSON that fits a schema.
	Formed bool
	// Takes and Makes are which media the agent's model takes and makes; what is not in them
	// is undeclared.
	Takes, Makes map[holdfast.PartType]bool
}

// Shown is an agent as GET /agents shows it.
type Shown struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Revision    string `json:"revision,omitempty"`
	Default     bool   `json:"default"`
	// Demo: the model is scripted, and understands what its "help" says.
	Demo bool `json:"demo"`
	// Models are called as in events, logs and metrics.
	Models []string `json:"models"`
	// Approvals says who answers the agent's questions: user or approver.
	Approvals    access.Role  `json:"approvals"`
	Tools        []ShownTool  `json:"tools"`
	Middleware   []string     `json:"middleware"`
	Capabilities Capabilities `json:"capabilities"`
}

// ShownTool is one of the server's tools. Effect says what running it twice would do.
type ShownTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Effect      holdfast.Effect `json:"effect"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	// TimeoutMs bounds one call; 0 means that nothing does.
	TimeoutMs int64 `json:"timeoutMs"`
	// Outside: calls are finished from outside.
	Outside bool `json:"outside,omitempty"`
}

// Capabilities are AG-UI's AgentCapabilities (AG-UI 1.0, capabilities). An absent
// group or member is undeclared, which is not the same as no: whatever depends on the
// model behind an agent is left out.
type Capabilities struct {
	Identity       identityCap  `json:"identity"`
	Transport      transportCap `json:"transport"`
	Tools          toolsCap     `json:"tools"`
	Output         *outputCap   `json:"output,omitempty"`
	State          stateCap     `json:"state"`
	Multimodal     *mediaCap    `json:"multimodal,omitempty"`
	Execution      *executeCap  `json:"execution,omitempty"`
	HumanInTheLoop humanCap     `json:"humanInTheLoop"`
	Custom         customCap    `json:"custom"`
}

// customCap is what AG-UI has no word for.
type customCap struct {
	Holdfast holdfastCap `json:"holdfast"`
}

// holdfastCap says how interrupted streams are resumed, which transport.resumable leaves
// open: see docs/protocol.md, "A proposal".
type holdfastCap struct {
	Cursors cursorsCap `json:"cursors"`
}

type cursorsCap struct {
	Request  string `json:"request"`  // the header that asks for cursors in events, with its value
	Member   string `json:"member"`   // where an event has its cursor
	Continue string `json:"continue"` // the header in which the cursor of the last event is sent back
}

type identityCap struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
}

type transportCap struct {
	Streaming         bool `json:"streaming"`
	Websocket         bool `json:"websocket"`
	HTTPBinary        bool `json:"httpBinary"`
	PushNotifications bool `json:"pushNotifications"`
	Resumable         bool `json:"resumable"`
}

type toolsCap struct {
	Supported      bool       `json:"supported"`
	Items          []toolItem `json:"items"`
	ParallelCalls  bool       `json:"parallelCalls"`
	ClientProvided bool       `json:"clientProvided"`
}

// toolItem is AG-UI's Tool.
type toolItem struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type outputCap struct {
	StructuredOutput   bool     `json:"structuredOutput"`
	SupportedMIMETypes []string `json:"supportedMimeTypes"`
}

type mediaCap struct {
	Input  *mediaIn  `json:"input,omitempty"`
	Output *mediaOut `json:"output,omitempty"`
}

type mediaIn struct {
	Image *bool `json:"image,omitempty"`
	Audio *bool `json:"audio,omitempty"`
	Video *bool `json:"video,omitempty"`
	PDF   *bool `json:"pdf,omitempty"`
}

type mediaOut struct {
	Image *bool `json:"image,omitempty"`
	Audio *bool `json:"audio,omitempty"`
}

// mediaOf returns what is declared of media; nil if nothing is.
func mediaOf(a *Info) *mediaCap {
	said := func(types map[holdfast.PartType]bool, t holdfast.PartType) *bool {
		if yes, declared := types[t]; declared {
			return &yes
		}
		return nil
	}
	c := &mediaCap{}
	if len(a.Takes) > 0 {
		c.Input = &mediaIn{
			said(a.Takes, holdfast.PartImage),
			said(a.Takes, holdfast.PartAudio),
			said(a.Takes, holdfast.PartVideo),
			said(a.Takes, holdfast.PartDocument),
		}
	}
	if len(a.Makes) > 0 {
		c.Output = &mediaOut{said(a.Makes, holdfast.PartImage), said(a.Makes, holdfast.PartAudio)}
	}
	if *c == (mediaCap{}) {
		return nil
	}
	return c
}

type stateCap struct {
	Snapshots       bool `json:"snapshots"`
	Deltas          bool `json:"deltas"`
	PersistentState bool `json:"persistentState"`
}

type executeCap struct {
	MaxIterations int `json:"maxIterations"`
}

type humanCap struct {
	Supported  bool `json:"supported"`
	Interrupts bool `json:"interrupts"`
}

// Show returns how a list of agents shows this one; version is the server's.
func Show(a *Info, first bool, version string) Shown {
	v := Shown{
		Name:         a.Name,
		Description:  a.Description,
		Revision:     a.Revision,
		Default:      first,
		Demo:         a.Scripted,
		Approvals:    cmp.Or(a.Approvals, access.RoleUser),
		Tools:        make([]ShownTool, len(a.Tools)),
		Models:       append([]string{}, a.Models...),
		Middleware:   append([]string{}, a.Middleware...),
		Capabilities: CapabilitiesOf(a, version),
	}
	for i, t := range a.Tools {
		v.Tools[i] = ShownTool{
			Name:        t.Name,
			Description: t.Description,
			Effect:      cmp.Or(t.Effect, holdfast.EffectIdempotent),
			Parameters:  t.Parameters,
			TimeoutMs:   max(cmp.Or(t.Timeout, a.ToolTimeout), 0).Milliseconds(),
			Outside:     t.Outside != nil,
		}
	}
	return v
}

// CapabilitiesOf describes what the routes of the server serve and how the agent is
// configured.
func CapabilitiesOf(a *Info, version string) Capabilities {
	c := Capabilities{
		Identity: identityCap{Name: a.Name, Type: "holdfast", Description: a.Description, Version: version},
		// Resumable: what streams a run continues after Last-Event-ID.
		Transport: transportCap{Streaming: true, Resumable: true},
		Tools: toolsCap{
			Supported:      true,
			Items:          make([]toolItem, len(a.Tools)),
			ParallelCalls:  a.ParallelTools > 1,
			ClientProvided: true,
		},
		State:          stateCap{Snapshots: true, PersistentState: a.Persistent},
		HumanInTheLoop: humanCap{Supported: true, Interrupts: true},
		Custom: customCap{holdfastCap{cursorsCap{
			Request: CursorsHeader + ": " + InMetadata, Member: "metadata.holdfast.cursor", Continue: LastEventHeader,
		}}},
	}
	for i, t := range a.Tools {
		c.Tools.Items[i] = toolItem{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	}
	c.Multimodal = mediaOf(a)
	if a.Formed {
		c.Output = &outputCap{StructuredOutput: true, SupportedMIMETypes: []string{"application/json"}}
	}
	if a.MaxIterations > 0 {
		c.Execution = &executeCap{MaxIterations: a.MaxIterations}
	}
	return c
}
