package fakeredis

import (
	"net/url"
	"strconv"
	"strings"
)

// The names of requests.

// Request is what a server sends at a time.
type Request struct {
	// Name says what it is, in a few words.
	Name string
	// Detail is all of it.
	Detail string
	// Writes means that it may change something.
	Writes bool
	// Reserves means that it is about a reservation.
	Reserves bool
	// Minor means that it belongs to the connection, or to presence: nothing is decided by when
	// it is carried out, as long as that is soon.
	Minor bool
	// greets means that it begins the connection.
	greets bool
}

// minor are the commands that are.
var minor = map[string]bool{
	"HELLO":  true,
	"CLIENT": true,
	"PING":   true,
	"SELECT": true,
	"AUTH":   true,
	"TIME":   true,
	"PUBSUB": true,
}

// greetings are the commands that begin a connection.
var greetings = map[string]bool{"HELLO": true, "CLIENT": true, "SELECT": true, "AUTH": true}

// reads are commands that change nothing; scripts are taken for commands that do.
var reads = map[string]bool{
	"EXISTS":           true,
	"GET":              true,
	"HGET":             true,
	"HMGET":            true,
	"HGETALL":          true,
	"HKEYS":            true,
	"HLEN":             true,
	"HSTRLEN":          true,
	"XRANGE":           true,
	"XREVRANGE":        true,
	"XLEN":             true,
	"ZRANGE":           true,
	"ZREVRANGE":        true,
	"ZRANGEBYSCORE":    true,
	"ZREVRANGEBYSCORE": true,
	"ZSCORE":           true,
	"ZCARD":            true,
	"ZRANGEBYLEX":      true,
	"ZREVRANGEBYLEX":   true,
	"SCAN":             true,
	"HSCAN":            true,
	"ZSCAN":            true,
	"MEMORY":           true,
	"STRLEN":           true,
	"EVAL_RO":          true,
	"EVALSHA_RO":       true,
	"INFO":             true,
	"CONFIG":           true,
	"TTL":              true,
	"PTTL":             true,
	"ZCOUNT":           true,
}

// isSubscription reports whether a command subscribes.
func isSubscription(command string) bool {
	return strings.HasSuffix(strings.ToUpper(command), "SUBSCRIBE")
}

// requestOf describes a batch of commands by the first that is not minor, and by how many there are.
func requestOf(batch []value) Request {
	r := Request{Minor: true, greets: true}
	for _, v := range batch {
		r.Detail += string(v.raw)
		if len(v.parts) == 0 {
			continue
		}
		command := strings.ToUpper(v.parts[0])
		isMinor := minor[command] || command == "HMGET" && len(v.parts) > 2 && strings.HasPrefix(v.parts[2], "needs:")
		name, commits := nameOf(command, v.parts)
		if r.Name == "" || r.Minor && !isMinor || commits {
			r.Name = name
		}
		r.Minor = r.Minor && isMinor
		r.Reserves = r.Reserves || strings.Contains(name, "-r:")
		r.greets = r.greets && greetings[command]
		r.Writes = r.Writes || !isMinor && !reads[command]
	}
	if len(batch) > 1 {
		r.Name += " of " + strconv.Itoa(len(batch))
	}
	return r
}

// nameOf names a command: by what it does to which thread or, if it is about none, to which key. It
// reports whether it is a commit.
func nameOf(command string, parts []string) (name string, commits bool) {
	script := strings.HasPrefix(command, "EVAL")
	key := ""
	keys := 1
	switch {
	case script && len(parts) > 3:
		keys, _ = strconv.Atoi(parts[2])
		key = parts[3]
	case !script && len(parts) > 1:
		key = parts[1]
	}
	name = strings.ToLower(command)
	if thread, of, is := threadOf(key); is {
		if script && of == "t" && keys > 1 {
			if _, second, _ := threadOf(parts[4]); second == "l" {
				return "commit " + thread, true
			}
		}
		return strings.TrimSpace(name + "-" + of + " " + thread), false
	}
	return strings.TrimSpace(name + " " + key), false
}

// threadOf returns the thread of a key, and which of its keys it is.
func threadOf(key string) (thread, of string, is bool) {
	_, rest, has := strings.Cut(key, ":{")
	tag, of, ends := strings.Cut(rest, "}:")
	if !has || !ends {
		return "", "", false
	}
	_, thread, is = strings.Cut(tag, "/")
	thread, err := url.QueryUnescape(thread)
	return thread, of, is && err == nil
}
