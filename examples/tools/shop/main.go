// Command shop is an MCP server for the agents file beside it. Of its tools, stock only reads,
// set_price may be called twice, and order may not. Events go into a file, a line each, so
// that one can count what the shop was asked and what it did, no matter what was killed
// meanwhile.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// entry is a line of the file: something that has happened to an item.
type entry struct {
	What  string `json:"what"`
	Item  string `json:"item"`
	Count int    `json:"count,omitempty"`
	Cents int    `json:"cents,omitempty"`
	Key   string `json:"key,omitempty"` // of the call
}

// Events.
const (
	priced  = "priced"
	asked   = "asked to order"
	ordered = "ordered"
)

// ware is an item: how many there are, and the price.
type ware struct {
	Count int `json:"count"`
	Cents int `json:"cents"`
}

type shop struct {
	file  string
	takes time.Duration // an order

	mu sync.Mutex // held from a look into the file to the line that follows from it
}

// add adds an entry, if it is possible, and returns the item. One that says nothing is only a
// look at the item.
func (s *shop) add(e entry) (ware, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]ware{"anchor": {2, 9900}, "lamp": {8, 2900}, "rope": {20, 1200}}
	text, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ware{}, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var before entry
		if err := d.Decode(&before); err != nil {
			return ware{}, fmt.Errorf("%s: %w", s.file, err)
		}
		all[before.Item] = all[before.Item].after(before)
	}
	w, known := all[e.Item]
	switch {
	case !known:
		return ware{}, fmt.Errorf("there is no %s; there are anchor, lamp and rope", e.Item)
	case e.What == asked && e.Count > w.Count:
		return ware{}, fmt.Errorf("there are only %d left", w.Count)
	case e.What == "":
		return w, nil
	}
	return w.after(e), s.write(e)
}

// after returns what an entry makes of the item.
func (w ware) after(e entry) ware {
	switch e.What {
	case priced:
		w.Cents = e.Cents
	case asked:
		w.Count -= e.Count
	}
	return w
}

func (s *shop) write(e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

type stockArgs struct {
	Item string `json:"item" jsonschema:"anchor, lamp or rope"`
}

func (s *shop) stock(_ context.Context, _ *mcp.CallToolRequest, a stockArgs) (*mcp.CallToolResult, ware, error) {
	w, err := s.add(entry{Item: a.Item})
	return nil, w, err
}

type priceArgs struct {
	Item  string `json:"item"`
	Cents int    `json:"cents" jsonschema:"the new price"`
}

func (s *shop) setPrice(_ context.Context, _ *mcp.CallToolRequest, a priceArgs) (*mcp.CallToolResult, ware, error) {
	w, err := s.add(entry{What: priced, Item: a.Item, Cents: a.Cents})
	return nil, w, err
}

type orderArgs struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

type receipt struct {
	Ordered string `json:"ordered"`
	Count   int    `json:"count"`
	Cents   int    `json:"cents"` // in all
}

// order takes its time. The caller may be gone by then.
func (s *shop) order(ctx context.Context, r *mcp.CallToolRequest, a orderArgs) (*mcp.CallToolResult, receipt, error) {
	key, _ := r.Params.Meta["io.github.holdfast-agents/key"].(string)
	if a.Count < 1 {
		return nil, receipt{}, errors.New("order one at least")
	}
	w, err := s.add(entry{What: asked, Item: a.Item, Count: a.Count, Key: key})
	if err != nil {
		return nil, receipt{}, err
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, receipt{}, ctx.Err()
	}
	if _, err := s.add(entry{What: ordered, Item: a.Item, Count: a.Count, Key: key}); err != nil {
		return nil, receipt{}, err
	}
	return nil, receipt{a.Item, a.Count, a.Count * w.Cents}, nil
}

func main() {
	s := &shop{}
	flag.StringVar(&s.file, "file", "shop.jsonl", "what has happened")
	flag.DurationVar(&s.takes, "takes", 10*time.Second, "how long an order takes")
	flag.Parse()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "stock", Description: "Says how many there are of an item, and what one costs.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, s.stock)
	mcp.AddTool(server, &mcp.Tool{Name: "set_price", Description: "Gives an item another price.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, s.setPrice)
	mcp.AddTool(server, &mcp.Tool{Name: "order", Description: "Orders some of an item."}, s.order)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
