package redaction

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
)

// NewLogHandler returns a handler that hides secrets in log lines before it passes them
// on: in the message and in the values of attributes, including groups, errors and nested
// values. A value that contains a secret becomes a string. Keys of attributes are not
// searched. It panics if the options are invalid.
func NewLogHandler(next slog.Handler, o Options) slog.Handler {
	r, err := newRedactor(o)
	if err != nil {
		panic("redaction.NewLogHandler: " + err.Error())
	}
	return &logHandler{next: next, redactor: r}
}

type logHandler struct {
	next     slog.Handler
	redactor *redactor
}

// Enabled asks the next handler.
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle passes a line on, unchanged if there is nothing to hide.
func (h *logHandler) Handle(ctx context.Context, line slog.Record) error {
	hide := &hiding{redactor: h.redactor}
	message := hide.text(line.Message)
	hidden := message != line.Message
	line.Attrs(func(a slog.Attr) bool {
		if !hidden {
			_, hidden = hide.value(a.Value)
		}
		return !hidden
	})
	if !hidden {
		return h.next.Handle(ctx, line)
	}
	clean := slog.NewRecord(line.Time, line.Level, message, line.PC)
	line.Attrs(func(a slog.Attr) bool {
		a.Value, _ = hide.value(a.Value)
		clean.AddAttrs(a)
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs hides secrets in attributes once, instead of in every line.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	hide := &hiding{redactor: h.redactor}
	attrs, _ = hide.attrs(attrs)
	return &logHandler{next: h.next.WithAttrs(attrs), redactor: h.redactor}
}

// WithGroup opens the group in the next handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{next: h.next.WithGroup(name), redactor: h.redactor}
}

// attrs hides secrets in attributes and reports whether there were any. If so, it returns
// a copy.
func (h *hiding) attrs(attrs []slog.Attr) ([]slog.Attr, bool) {
	copied := false
	for i := range attrs {
		v, hidden := h.value(attrs[i].Value)
		if !hidden {
			continue
		}
		if !copied {
			attrs, copied = slices.Clone(attrs), true
		}
		attrs[i].Value = v
	}
	return attrs, copied
}

// value hides secrets in the value of an attribute and reports whether there were any.
func (h *hiding) value(v slog.Value) (slog.Value, bool) {
	switch v = v.Resolve(); v.Kind() {
	case slog.KindString:
		return h.changed(v, v.String())
	case slog.KindInt64:
		if n := v.Int64(); n >= smallestCard {
			return h.changed(v, strconv.FormatInt(n, 10))
		}
	case slog.KindUint64:
		if n := v.Uint64(); n >= smallestCard {
			return h.changed(v, strconv.FormatUint(n, 10))
		}
	case slog.KindGroup:
		attrs, hidden := h.attrs(v.Group())
		return slog.GroupValue(attrs...), hidden
	case slog.KindAny:
		for _, text := range forms(v.Any()) {
			if clean, hidden := h.changed(v, text); hidden {
				return clean, true
			}
		}
	}
	return v, false
}

// smallestCard is the smallest number that can be a card number.
const smallestCard = 1e12

func (h *hiding) changed(v slog.Value, text string) (slog.Value, bool) {
	clean := h.text(text)
	if clean == text {
		return v, false
	}
	return slog.StringValue(clean), true
}

// forms returns the texts that handlers may write for a value. A value whose method
// panics is left to the handler, which knows what to write for it.
func forms(v any) (texts []string) {
	defer func() { _ = recover() }()
	if b, ok := v.([]byte); ok {
		texts = append(texts, string(b))
	}
	texts = append(texts, fmt.Sprintf("%+v", v)) // for an error, its text
	if _, ok := v.(error); ok {
		if _, ok := v.(json.Marshaler); !ok {
			return texts
		}
	}
	if b, err := json.Marshal(v); err == nil {
		texts = append(texts, string(b))
	}
	return texts
}
