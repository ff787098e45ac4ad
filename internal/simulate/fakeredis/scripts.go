package fakeredis

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Scripts run in an interpreter that is used again. The one that miniredis makes for each call costs
// several times as much as everything else that a command does.

// scripts are those of a Redis.
type scripts struct {
	server *server.Server
	known  map[string]string // by their hashes
}

func newScripts(s *server.Server) *scripts {
	return &scripts{server: s, known: map[string]string{}}
}

// hook runs what runs a script, and reports whether it has. It is called for each command, of a script,
// too.
func (s *scripts) hook(peer *server.Peer, command string, args ...string) bool {
	switch {
	case command == "EVAL" && len(args) > 1:
		hash := sha1.Sum([]byte(args[0])) //nolint:gosec // Redis names scripts so
		s.known[hex.EncodeToString(hash[:])] = args[0]
	case command == "EVALSHA" && len(args) > 1:
		if s.known[args[0]] == "" {
			peer.WriteError("NOSCRIPT No matching script. Please use EVAL.")
			return true
		}
		args = append([]string{s.known[args[0]]}, args[1:]...)
	default:
		return false
	}
	if err := s.run(peer, args[0], args[1:]); err != nil {
		peer.WriteError("ERR Error running script: " + err.Error())
	}
	return true
}

// interpreters are those that nobody uses.
var interpreters = sync.Pool{New: func() any { return newInterpreter() }}

// run runs a script, whose arguments begin with the number of its keys.
func (s *scripts) run(peer *server.Peer, text string, args []string) error {
	n, err := strconv.Atoi(args[0])
	if args = args[1:]; err != nil || n < 0 || n > len(args) {
		return fmt.Errorf("%q is not how many keys it has", args)
	}
	program, err := compiled(text)
	if err != nil {
		return err
	}
	i := interpreters.Get().(*interpreter)
	i.server = s.server
	i.list("KEYS", args[:n])
	i.list("ARGV", args[n:])
	i.state.Push(i.state.NewFunctionFromProto(program))
	if err := i.state.PCall(0, 1, nil); err != nil {
		i.state.Close() // its stack may have anything
		return err
	}
	i.tell(peer, i.state.Get(-1))
	i.state.SetTop(0)
	i.server = nil
	interpreters.Put(i)
	return nil
}

// programs are all scripts that were compiled, by their texts.
var programs sync.Map

func compiled(text string) (*lua.FunctionProto, error) {
	if known, is := programs.Load(text); is {
		return known.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, err
	}
	program, err := lua.Compile(chunk, "user_script")
	if err != nil {
		return nil, err
	}
	programs.Store(text, program)
	return program, nil
}

// interpreter runs one script after the other.
type interpreter struct {
	state  *lua.LState
	server *server.Server // that the script is of

	said bytes.Buffer // by the commands of scripts
	from *bufio.Reader
	peer *server.Peer
}

func newInterpreter() *interpreter {
	i := &interpreter{state: lua.NewState(lua.Options{SkipOpenLibs: true})}
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName:   lua.OpenBase,
		lua.TabLibName:    lua.OpenTable,
		lua.StringLibName: lua.OpenString,
		lua.MathLibName:   lua.OpenMath,
	} {
		i.state.Push(i.state.NewFunction(open))
		i.state.Push(lua.LString(name))
		i.state.Call(1, 0)
	}
	i.from, i.peer = bufio.NewReader(&i.said), peerOf(&i.said)
	redis := i.state.NewTable()
	redis.RawSetString("call", i.state.NewFunction(i.call))
	redis.RawSetString("pcall", i.state.NewFunction(i.try))
	i.state.SetGlobal("redis", redis)
	return i
}

// list sets a global list.
func (i *interpreter) list(name string, values []string) {
	list := i.state.CreateTable(len(values), 0)
	for _, v := range values {
		list.Append(lua.LString(v))
	}
	i.state.SetGlobal(name, list)
}

// ask carries out the command that is on the stack.
func (i *interpreter) ask(l *lua.LState) (lua.LValue, error) {
	args := make([]string, l.GetTop())
	for n := range args {
		switch a := l.Get(n + 1).(type) {
		case lua.LNumber, lua.LString:
			args[n] = a.String()
		default:
			return nil, fmt.Errorf("the argument %d of a command is a %s", n+1, a.Type())
		}
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("a command has no name")
	}
	i.said.Reset()
	i.from.Reset(&i.said)
	i.server.Dispatch(i.peer, args)
	i.peer.Flush()
	said, err := server.ParseReply(i.from)
	if err != nil {
		return nil, err
	}
	return i.valueOf(said), nil
}

// call is redis.call.
func (i *interpreter) call(l *lua.LState) int {
	said, err := i.ask(l)
	if err != nil {
		l.Error(lua.LString(err.Error()), 1)
		return 0
	}
	l.Push(said)
	return 1
}

// try is redis.pcall.
func (i *interpreter) try(l *lua.LState) int {
	said, err := i.ask(l)
	if err != nil {
		failed := l.NewTable()
		failed.RawSetString("err", lua.LString(err.Error()))
		said = failed
	}
	l.Push(said)
	return 1
}

// valueOf returns what Redis says as a script gets it.
func (i *interpreter) valueOf(said any) lua.LValue {
	switch s := said.(type) {
	case nil:
		return lua.LFalse
	case int:
		return lua.LNumber(s)
	case string:
		return lua.LString(s)
	case server.Simple:
		status := i.state.NewTable()
		status.RawSetString("ok", lua.LString(s))
		return status
	case []any:
		list := i.state.CreateTable(len(s), 0)
		for _, one := range s {
			list.Append(i.valueOf(one))
		}
		return list
	}
	panic(fmt.Sprintf("Redis has said %T", said))
}

// tell has Redis say what a script returns.
func (i *interpreter) tell(peer *server.Peer, v lua.LValue) {
	switch v := v.(type) {
	case lua.LBool:
		if bool(v) {
			peer.WriteInt(1)
			return
		}
		peer.WriteNull()
	case lua.LNumber:
		peer.WriteInt(int(v))
	case lua.LString:
		peer.WriteBulk(string(v))
	case *lua.LTable:
		if failed, is := v.RawGetString("err").(lua.LString); is {
			peer.WriteError(string(failed))
			return
		}
		if status, is := v.RawGetString("ok").(lua.LString); is {
			peer.WriteInline(string(status))
			return
		}
		n := 0
		for v.RawGetInt(n+1) != lua.LNil {
			n++
		}
		peer.WriteLen(n)
		for at := range n {
			i.tell(peer, v.RawGetInt(at+1))
		}
	default:
		peer.WriteNull()
	}
}
