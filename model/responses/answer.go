package responses

// Reading an answer: items of reasoning, text and calls, by index, which may come one
// after another or in turn. An answer is complete only after a terminal event, which has
// the whole response with its usage.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// event is one event of a stream: all fields of the kinds that matter.
type event struct {
	Type      string          `json:"type"`
	Index     int             `json:"output_index"`
	Summary   int             `json:"summary_index"`
	Delta     modelhttp.Text  `json:"delta"`
	Arguments string          `json:"arguments"`
	Item      json.RawMessage `json:"item"`
	Response  json.RawMessage `json:"response"`
	Error     json.RawMessage `json:"error"`
}

// response is what a terminal event has.
type response struct {
	Object     string            `json:"object"`
	Status     string            `json:"status"`
	Model      string            `json:"model"`
	Output     []json.RawMessage `json:"output"`
	Usage      *usage            `json:"usage"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// wireItem is an item of an answer.
type wireItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	// Result is an image in base64, and Format what kind of image.
	Result  string `json:"result"`
	Format  string `json:"output_format"`
	Content []part `json:"content"`
	Summary []part `json:"summary"`
}

type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// answer is an answer that is being read.
type answer struct {
	*modelhttp.Answer
	model *Model

	now   event // the one that is being read: a new one for each would be a third of the cost
	items map[int]*item
	known map[string]*item // calls by their ids
	// pending are items of reasoning that were not passed on as a secret yet.
	pending []json.RawMessage
	calls   int // calls so far
	media   int // images so far
	held    int // bytes of what is not passed on at once, or compared later; see hold
	// thinking: the last that was passed on is reasoning, of the part thought.
	thinking bool
	thought  [2]int
	refused  bool // there was a refusal
}

// item is an item that has begun.
type item struct {
	id   string
	said bool // some of its text was passed on
	done bool
	// call is the index of the call, once it has begun, and arguments are those so far.
	begun     bool
	call      int
	arguments []byte
	seam      modelhttp.Seam // of the arguments
}

const (
	// maxHeld bounds what is held of an answer, in bytes, and perItem is what each item
	// counts: nobody else can bound what is not passed on.
	maxHeld = 4 << 20
	perItem = 1 << 8
)

// end is the last data of some servers, which says nothing.
const end = "[DONE]"

// Event implements modelhttp.Parser.
func (a *answer) Event(ev modelhttp.Event) error {
	if text, index, ok := plainText(ev.Data); ok && !ev.Failed {
		return a.say(index, text)
	}
	if string(ev.Data) == end {
		return a.Truncated(errors.New(end + " came without a terminal event"))
	}
	a.now = event{}
	e := &a.now
	if err := json.Unmarshal(ev.Data, e); err != nil && !ev.Failed {
		return a.odd(ev.Data, err)
	}
	// An event of any kind may say, with null, that there was no error.
	if ev.Failed || e.Type == "error" || modelhttp.Given(e.Error) {
		return a.fail(ev.Data)
	}
	switch e.Type {
	case "response.output_text.delta":
		return a.say(e.Index, string(e.Delta))
	case "response.refusal.delta":
		a.refused = true
		return a.say(e.Index, string(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.think(e.Index, e.Summary, string(e.Delta))
	case "response.function_call_arguments.delta":
		return a.more(e.Index, string(e.Delta))
	case "response.function_call_arguments.done":
		return a.all(e.Index, e.Arguments)
	case "response.output_item.added", "response.output_item.done":
		return a.item(e.Index, e.Item, e.Type == "response.output_item.done")
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return a.end(strings.TrimPrefix(e.Type, "response."), e.Response)
	}
	return nil
}

// known is what all kinds of events that matter begin with.
var known = []string{
	"response.output_text.delta",
	"response.refusal.delta",
	"response.reasoning_",
	"response.function_call_",
	"response.output_item.",
	"response.completed",
	"response.incomplete",
	"response.failed",
	"response.cancelled",
	"error",
}

// odd decides about an event that has another form than expected: one of a kind that is
// not known may have any.
func (a *answer) odd(data []byte, cause error) error {
	var e struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &e) != nil || e.Type == "" {
		return a.Undecodable(cause)
	}
	for _, kind := range known {
		if strings.HasPrefix(e.Type, kind) {
			return a.Undecodable(cause)
		}
	}
	return nil
}

// fail returns the error of an event that says what went wrong.
func (a *answer) fail(data []byte) error {
	f := modelhttp.ParseFailure(0, data)
	if code := strings.ToLower(f.Code); strings.Contains(code, "image") && !strings.Contains(code, "policy") {
		f.Kind = failure.Invalid // there are a dozen codes for images that cannot be used
	}
	return a.Fail(f)
}

// Whole implements modelhttp.Parser.
func (a *answer) Whole(data []byte) error {
	var r response
	switch err := json.Unmarshal(data, &r); {
	case err == nil && modelhttp.Given(r.Error):
		return a.fail(data)
	case err == nil && r.Object == "response" && r.Status != "":
		if err := a.end(r.Status, data); !errors.Is(err, modelhttp.ErrComplete) {
			return err
		}
		return nil
	}
	return a.NotStreamed(data)
}

// Ended implements modelhttp.Parser.
func (a *answer) Ended(cause error) error { return a.Truncated(cause) }

// hold counts bytes that are not passed on at once.
func (a *answer) hold(n int) error {
	if a.held += n; a.held > maxHeld {
		return a.TooMuch("reasoning, arguments, or items without content")
	}
	return nil
}

// at returns the item with an index. Some servers leave the start of an item out.
func (a *answer) at(index int) (*item, error) {
	if it := a.items[index]; it != nil {
		return it, nil
	}
	it := &item{}
	a.items[index] = it
	return it, a.hold(perItem)
}

// say passes a piece of text on, after the reasoning that came before it.
func (a *answer) say(index int, text string) error {
	it, err := a.at(index)
	if err != nil || text == "" {
		return err
	}
	if err := a.flush(); err != nil {
		return err
	}
	it.said = true
	return a.Emit(holdfast.Delta{Text: text})
}

// think passes a piece of reasoning on. Its parts are paragraphs.
func (a *answer) think(index, summary int, text string) error {
	it, err := a.at(index)
	if err != nil || text == "" {
		return err
	}
	it.said = true
	if part := [2]int{index, summary}; part != a.thought {
		if a.thinking {
			text = "\n\n" + text
		}
		a.thought = part
	}
	a.thinking = true
	return a.Emit(holdfast.Delta{Reasoning: text})
}

// item takes the start or the end of an item. The end has the whole of it, which some
// servers send alone.
func (a *answer) item(index int, raw json.RawMessage, done bool) error {
	var w wireItem
	if err := json.Unmarshal(raw, &w); err != nil {
		return a.Undecodable(err)
	}
	it, err := a.find(index, &w, done)
	if err != nil || it.done {
		return err // an end that comes twice ends nothing
	}
	it.done = done
	switch w.Type {
	case kindMessage:
		if done && !it.said {
			return a.sayAll(index, w.Content)
		}
	case kindReasoning:
		if done {
			return a.reasoned(index, it, &w, raw)
		}
	case kindCall:
		return a.called(it, &w)
	case kindImage:
		if done && w.Result != "" {
			return a.made(&w)
		}
	}
	return nil
}

// find returns the item that has an index. A call is also known by its ids, since one that
// came under two indexes would be made twice.
func (a *answer) find(index int, w *wireItem, done bool) (*item, error) {
	ids := w.ID + " " + w.CallID
	known := w.CallID != "" && a.known[ids] != nil
	switch it := a.items[index]; {
	case known:
		a.items[index] = a.known[ids]
	case !done && it != nil && (w.ID == "" || it.id != w.ID):
		delete(a.items, index) // some servers count all items as the first
	}
	it, err := a.at(index)
	if it.id = w.ID; w.CallID != "" && !known {
		a.known[ids] = it
		err = cmp.Or(err, a.hold(len(ids)))
	}
	return it, err
}

// sayAll passes on the text of a message of which there were no pieces.
func (a *answer) sayAll(index int, parts []part) error {
	for _, p := range parts {
		a.refused = a.refused || p.Refusal != ""
		if err := a.say(index, p.Text+p.Refusal); err != nil {
			return err
		}
	}
	return nil
}

// reasoned takes an item of reasoning, to be sent back as it is. The one that an item
// began with may be incomplete. Without its encrypted content nobody could read it, since
// the provider does not store it.
func (a *answer) reasoned(index int, it *item, w *wireItem, raw json.RawMessage) error {
	if !it.said {
		for n, p := range append(w.Summary, w.Content...) {
			if err := a.think(index, n, p.Text); err != nil {
				return err
			}
		}
	}
	if w.Encrypted == "" {
		return nil
	}
	a.pending = append(a.pending, bytes.Clone(raw))
	return a.hold(len(raw))
}

// flush passes on, as one secret, the items of reasoning that have ended: something follows
// them. Reasoning at the end of an answer leads to nothing, and the provider would refuse it.
func (a *answer) flush() error {
	a.thinking = false
	if len(a.pending) == 0 {
		return nil
	}
	sealed := a.model.client.SealAfter(a.media, a.Said(), a.calls, a.pending...)
	a.pending = nil
	return a.Emit(holdfast.Delta{ReasoningSecret: sealed})
}
