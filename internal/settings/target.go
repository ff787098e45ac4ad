package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/jwtauth"
	"github.com/holdfast-agents/holdfast/server"
)

// The targets of settings: for each form of a value, how it is read and checked, and how it is
// written.

// target is where the value of a setting goes. The error of set says what to write instead.
type target struct {
	set     func(text string) error
	show    func() string
	boolean bool
}

// text takes any text.
func text(into *string) target {
	return target{
		set:  func(v string) error { *into = v; return nil },
		show: func() string { return *into },
	}
}

// word takes one of these words.
func word(into *string, known ...string) target {
	t := text(into)
	t.set = func(v string) error {
		if !slices.Contains(known, v) {
			return oneOf(known)
		}
		*into = v
		return nil
	}
	return t
}

func oneOf(known []string) error {
	last := len(known) - 1
	return fmt.Errorf("use %s or %s", strings.Join(known[:last], ", "), known[last])
}

// choice takes one of two words, of which the second one is true.
func choice(into *bool, no, yes string) target {
	return target{
		set: func(v string) error {
			if v != no && v != yes {
				return oneOf([]string{no, yes})
			}
			*into = v == yes
			return nil
		},
		show: func() string {
			if *into {
				return yes
			}
			return no
		},
	}
}

// yes takes true or false.
func yes(into *bool) target {
	return target{
		set: func(v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return oneOf([]string{"true", "false"})
			}
			*into = b
			return nil
		},
		show:    func() string { return strconv.FormatBool(*into) },
		boolean: true,
	}
}

// list takes texts with commas between them.
func list(into *[]string) target {
	return target{
		set:  func(v string) error { *into = Split(v); return nil },
		show: func() string { return strings.Join(*into, ",") },
	}
}

// Split splits a text at commas.
func Split(text string) []string {
	var entries []string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// duration takes a duration that is not shorter than least.
func duration(into *time.Duration, least time.Duration) target {
	return target{
		set: func(v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d < least {
				return fmt.Errorf("write a duration from %s with its unit, like 30s, 2m or 1h30m", least)
			}
			*into = d
			return nil
		},
		show: func() string { return into.String() },
	}
}

// window takes how long words wait for more: a duration, or auto.
func window(into *time.Duration) target {
	fixed := duration(into, 0)
	return target{
		set: func(v string) error {
			if v == "auto" {
				*into = server.AutoWindow
				return nil
			}
			if err := fixed.set(v); err != nil {
				return errors.New("write auto, or a duration with its unit, like 100ms or 1s")
			}
			return nil
		},
		show: func() string {
			if *into == server.AutoWindow {
				return "auto"
			}
			return fixed.show()
		},
	}
}

// number takes a whole number that is not less than least.
func number(into *int, least int) target {
	return target{
		set: func(v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < least {
				return fmt.Errorf("write a whole number from %d, like 20", least)
			}
			*into = n
			return nil
		},
		show: func() string { return strconv.Itoa(*into) },
	}
}

// perAddress takes the connections of one address. The server's configuration has 0 for the
// default and -1 for any number, and the setting has it the other way round.
func perAddress(into *int) target {
	t := number(into, -1)
	t.set = func(v string) error {
		n, err := strconv.Atoi(v)
		switch {
		case err != nil || n < -1:
			return errors.New("use a number, 0 for any, or -1 for a quarter of maxConnections")
		case n <= 0:
			n = -1 - n
		}
		*into = n
		return nil
	}
	t.show = func() string {
		if *into > 0 {
			return strconv.Itoa(*into)
		}
		return strconv.Itoa(-1 - *into)
	}
	return t
}

// units are those of a size, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}

// size takes bytes, with a unit or without, that are not less than least.
func size(into *int64, least int64) target {
	return target{
		set: func(v string) error {
			digits, bytes := v, int64(1)
			for _, u := range units {
				if number, has := strings.CutSuffix(v, u.name); has {
					digits, bytes = number, u.bytes
					break
				}
			}
			n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			if err != nil || n < least || n > 1<<53/bytes {
				return errors.New("write a size, like 256KiB or 4MiB")
			}
			*into = n * bytes
			return nil
		},
		show: func() string {
			for _, u := range units[:3] {
				if n := *into; n > 0 && n%u.bytes == 0 {
					return strconv.FormatInt(n/u.bytes, 10) + u.name
				}
			}
			return strconv.FormatInt(*into, 10)
		},
	}
}

// bound takes a size of which 0 is none. The server's configuration has -1 for that.
func bound(into *int64) target {
	t := size(into, 0)
	set, show := t.set, t.show
	t.set = func(v string) error {
		err := set(v)
		if err == nil && *into == 0 {
			*into = -1
		}
		return err
	}
	t.show = func() string {
		if *into < 0 {
			return "0"
		}
		return show()
	}
	return t
}

// kept takes how many checkpoints stay listed.
func kept(into *int) target {
	return target{
		set: func(v string) error {
			number, numbered := strings.CutPrefix(v, "full:")
			n, err := strconv.Atoi(number)
			switch {
			case v == "full":
				*into = 100
			case v == "latest":
				*into = 1
			case v == "all":
				*into = -1
			case numbered && err == nil && n >= 1:
				*into = n
			default:
				return errors.New("use full, full:N with a number from 1, all, or latest")
			}
			return nil
		},
		show: func() string {
			switch *into {
			case 100:
				return "full"
			case 1:
				return "latest"
			case -1:
				return "all"
			}
			return "full:" + strconv.Itoa(*into)
		},
	}
}

// providers are the providers of models that a setting may name.
var providers = []string{"openai", "responses", "anthropic", "gemini"}

// models takes a model, or several with commas between them.
func models(into *string) target {
	t := text(into)
	t.set = func(v string) error {
		names := Split(v)
		for _, name := range names {
			provider, model, _ := strings.Cut(name, "/")
			if name != "demo" && (model == "" || !slices.Contains(providers, provider)) {
				return fmt.Errorf("%s is not known: use demo, or openai/NAME, responses/NAME, anthropic/NAME or "+
					"gemini/NAME with the provider's name of the model, or several of them with commas between them",
					name)
			}
		}
		if v != "" && len(names) == 0 {
			return errors.New("it names no model: use demo, or leave it out")
		}
		*into = strings.Join(names, ",")
		return nil
	}
	return t
}

// level takes the level of a log.
func level(into *slog.Level) target {
	return target{
		set: func(v string) error {
			if into.UnmarshalText([]byte(v)) != nil {
				return oneOf([]string{"debug", "info", "warn", "error"})
			}
			return nil
		},
		show: func() string { return strings.ToLower(into.String()) },
	}
}

// claims takes which claim of a token says what.
func claims(o *jwtauth.Options) target {
	var said string
	t := text(&said)
	t.set = func(v string) error {
		for _, entry := range Split(v) {
			name, claim, ok := strings.Cut(entry, "=")
			into := map[string]*string{"tenant": &o.TenantClaim, "user": &o.UserClaim, "roles": &o.RolesClaim,
				"agents": &o.AgentsClaim}[name]
			if !ok || claim == "" || into == nil {
				return errors.New("write what is in which claim, like " +
					"tenant=org_id,user=sub,roles=realm_access.roles,agents=agents")
			}
			*into = claim
		}
		said = v
		return nil
	}
	return t
}
