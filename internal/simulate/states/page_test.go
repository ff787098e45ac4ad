package states_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// page is a page as a stock client has it, or one that knows versions.
type page struct {
	s        *scene
	name     string
	names    bool // it names the version that it has
	chat     bool
	doc      string
	version  string
	messages []agui.Message
	// fields are what the person has put into the fields that are the page's own.
	fields map[string]string
}

// load attaches to the thread, follows it to its end, and reads its messages. A server may die meanwhile.
func (p *page) load() {
	for range 100 {
		at := p.s.any()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		reply, err := at.Owner.Attach(ctx, looptest.Alice, "t", agui.DialectV1)
		if err == nil {
			err = p.follow(reply)
		}
		if err == nil {
			err = p.read(ctx, at.Engine)
		}
		cancel()
		if err == nil {
			return
		}
	}
	p.s.wrong("page %s cannot be loaded", p.name)
}

// read reads the messages that belong to the document that the page has. A client has both from one stream; here
// another run may have begun in between.
func (p *page) read(ctx context.Context, e *looptest.Engine) error {
	list, err := shown(ctx, e)
	if err != nil {
		return err
	}
	head, err := thread.Reader{Store: p.s.db}.Head(ctx, looptest.KeyOf("t"))
	if err != nil {
		return err
	}
	if is := p.s.document(head.State.Shared); !p.s.drops && !jsonpatch.Equal([]byte(is), []byte(p.doc)) {
		return fmt.Errorf("the document is another one by now")
	}
	p.messages = list
	return nil
}

// shown returns the messages of the thread as a page sends them back.
func shown(ctx context.Context, e *looptest.Engine) (list []agui.Message, err error) {
	all, err := e.Messages(ctx, looptest.Alice, "t")
	if err != nil {
		return nil, err
	}
	for _, raw := range all {
		m, err := agui.DecodeMessage(raw)
		if err != nil {
			return nil, err
		}
		m.DropMarks()
		list = append(list, m)
	}
	return list, nil
}

// follow takes what a stream shows, to the end of the run.
func (p *page) follow(reply *agui.Reply) error {
	for frames, err := range reply.Frames {
		if err != nil {
			return err
		}
		for i := range frames {
			if frames[i].Pieces == nil {
				p.take(frames[i].Data)
			}
			switch agui.TypeOf(frames[i].Data) {
			case agui.TypeRunFinished, agui.TypeRunError:
				return nil
			}
		}
	}
	return fmt.Errorf("the stream ends in the middle")
}

// take does with an event what a stock client does.
func (p *page) take(data []byte) {
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		p.s.wrong("an event: %v", err)
		return
	}
	var metadata json.RawMessage
	switch ev := ev.(type) {
	case agui.StateSnapshot:
		p.doc, metadata = string(ev.Snapshot), ev.Metadata
	case agui.StateDelta:
		if p.s.drops && p.s.draw(4) == 0 {
			return
		}
		next, err := jsonpatch.Apply([]byte(p.doc), ev.Delta)
		if err != nil {
			p.s.wrong("page %s has %s, and %s cannot be applied: %v", p.name, p.doc, ev.Delta, err)
			return
		}
		p.doc, metadata = string(next), ev.Metadata
	default:
		return
	}
	var told struct {
		Holdfast struct {
			StateVersion string `json:"stateVersion"`
		} `json:"holdfast"`
	}
	_ = json.Unmarshal(metadata, &told)
	p.version = told.Holdfast.StateVersion
	if doc := p.s.document(p.version); p.version != "" && !p.s.drops && !jsonpatch.Equal([]byte(doc), []byte(p.doc)) {
		p.s.wrong("page %s has %s as %s, which is %s", p.name, p.doc, p.version, doc)
	}
}

// post sends a message with what the person has changed in the document, and follows the run. It returns whether
// one began.
func (p *page) post() bool {
	fields := map[string]string{}
	for k, v := range p.fields {
		fields[k] = v
	}
	mark, own := p.s.mark("page"), []string{"a", "b", "c"}[p.s.draw(3)]
	fields[own] = mark
	state, err := edited(json.RawMessage(p.doc), func(doc map[string]any) {
		if doc["list"] == nil {
			doc["list"], doc["tool"], doc["page"] = []any{}, map[string]any{}, map[string]any{}
			doc["pad"] = strings.Repeat("pad ", 200)
		}
		doc["page"].(map[string]any)[p.name] = fields
		if p.s.draw(3) == 0 {
			p.s.note(p.s.titles, mark)
			doc["title"] = mark
		}
	})
	if err != nil {
		p.s.wrong("page %s has %s: %v", p.name, p.doc, err)
		return false
	}
	in := looptest.RunInput("t", "run"+mark,
		append(slices.Clone(p.messages), looptest.UserSays("user"+mark, strings.Repeat(".", 1+p.s.draw(3))))...)
	in.State = state
	// A page may send nothing of the document, once there is one. Otherwise two pages would each make the first
	// one, and of two first ones the agent's rule drops what it has to.
	if p.s.draw(8) == 0 && p.doc != "{}" {
		in.State, fields = nil, p.fields
	}
	options := map[string]any{"chat": p.chat, "onUnfinished": "abandon"}
	if p.names && p.version != "" {
		options["stateVersion"] = p.version
	}
	in.ForwardedProps, _ = json.Marshal(map[string]any{"holdfast": options})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reply, err := p.s.any().Owner.Post(ctx, looptest.Alice, "", in)
	if err != nil {
		p.refused(own, mark)
		return false
	}
	if in.State != nil {
		p.doc = string(in.State)
	}
	p.fields = fields
	if p.follow(reply) != nil || p.read(ctx, p.s.any().Engine) != nil {
		p.load()
	}
	return true
}

// refused loads the page after a request that was refused, or whose server has died: then it may have been
// accepted.
func (p *page) refused(own, mark string) {
	p.s.note(p.s.unsure, mark)
	p.load()
	var got struct {
		Page map[string]map[string]string `json:"page"`
	}
	if json.Unmarshal([]byte(p.doc), &got) == nil && got.Page[p.name][own] == mark {
		p.fields = got.Page[p.name]
	}
}
