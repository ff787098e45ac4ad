package filestore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/store"
)

const (
	// crashVariable is set in the child of TestCrash: the store to commit to.
	crashVariable = "FILESTORE_TEST_CRASH"
	// patientVariable is set if the child tries again what fails.
	patientVariable = "FILESTORE_TEST_PATIENT"
	// smallVariable is set if the child's tables are small, so that it makes many.
	smallVariable = "FILESTORE_TEST_SMALL"
	// leavesVariable is set in a process for tests after which goroutines are left.
	leavesVariable = "FILESTORE_TEST_LEAVES"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashVariable); path != "" {
		fmt.Fprintln(os.Stderr, commitForever(path))
		os.Exit(1)
	}
	if os.Getenv(leavesVariable) != "" {
		os.Exit(m.Run())
	}
	if err := testkit.Checks(4); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const crashThreads = 8

func threadKey(n int) store.ThreadKey {
	return store.ThreadKey{Tenant: "acme", Thread: fmt.Sprintf("thread-%d", n)}
}

// commitForever is the child: it goes on with each thread from its head, and
// prints each commit that was acknowledged.
func commitForever(path string) error {
	opts := Options{LockTimeout: 10 * time.Second}
	if os.Getenv(smallVariable) != "" {
		opts.memTable = 1 << 20
	}
	s, err := Open(path, opts)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	failures := make(chan error, crashThreads)
	for n := range crashThreads {
		wg.Go(func() { failures <- commitOn(s, threadKey(n)) })
	}
	return <-failures
}

func commitOn(s *Store, key store.ThreadKey) error {
	ctx := context.Background()
	head, err := s.Head(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		head, err = &store.Head{Key: key, Next: 1}, nil
	}
	if err != nil {
		return err
	}
	patient := os.Getenv(patientVariable) != ""
	for {
		id := fmt.Sprintf("%s-%d", key.Thread, head.Next)
		message := []byte(id)
		if patient {
			message = random(20_000) // to fill the disk
		}
		c := &store.Commit{
			Key:       key,
			ID:        id,
			Expect:    head.Position(),
			Fence:     store.Fence{Epoch: 1, Nonce: "abcdefgh"},
			UpdatedAt: time.Now(),
			Records:   [][]byte{[]byte(id)},
			State:     bytes.Repeat([]byte(id), 1+rand.IntN(2000)),
			Put: []store.Value{
				{Kind: "k", ID: fmt.Sprintf("%08d", head.Next), Data: random(1 + rand.IntN(50_000))},
			},
			Keep:     map[store.Kind]int{"k": 20},
			Messages: []store.Message{{ID: id, Data: message}},
		}
		for err := s.Commit(ctx, c); err != nil; err = s.Commit(ctx, c) {
			if !patient {
				return err
			}
			if _, err := fmt.Fprintf(os.Stdout, "%s refused: %v\n", key.Thread, err); err != nil {
				return err
			}
		}
		// One write of the whole line, so that a kill does not leave half of it.
		if _, err := os.Stdout.WriteString(fmt.Sprintf("%s %d\n", key.Thread, head.Next)); err != nil {
			return err
		}
		head = &store.Head{Fence: c.Fence, Next: head.Next + 1, ETag: c.ID}
	}
}

// TestCrash kills a process that commits, at random moments, and looks for what
// it had been promised.
func TestCrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	acknowledged := map[string]uint64{} // the last record, by thread
	for round := range 8 {
		before := total(acknowledged)
		killed(t, path, false, time.Duration(rand.IntN(150))*time.Millisecond, acknowledged)
		survived(t, path, acknowledged)
		t.Logf("round %d: %d commits acknowledged", round, total(acknowledged)-before)
	}
	if total(acknowledged) == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

func total(acknowledged map[string]uint64) (sum uint64) {
	for _, n := range acknowledged {
		sum += n
	}
	return sum
}

// killed runs the child, kills it some time after its first commit, or after its start, and
// notes what it printed.
func killed(t *testing.T, path string, early bool, after time.Duration, acknowledged map[string]uint64, env ...string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(append(os.Environ(), crashVariable+"="+path), env...)
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = child.Process.Kill() } // Wait below sees whether it worked
	if early {
		time.AfterFunc(after, kill)
	}
	lines := bufio.NewReader(out)
	for first := !early; ; first = false {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		var thread string
		var n uint64
		if _, err := fmt.Sscanf(line, "%s %d\n", &thread, &n); err != nil {
			t.Errorf("the child printed %q", line)
		}
		acknowledged[thread] = n
		if first {
			time.AfterFunc(after, kill)
		}
	}
	if err := child.Wait(); err == nil || complaints.Len() > 0 {
		t.Fatalf("the child ended by itself: %v %s", err, complaints.String())
	}
}

// survived opens the store and checks it against what was acknowledged.
func survived(t *testing.T, path string, acknowledged map[string]uint64) {
	t.Helper()
	s := openAt(t, path)
	defer s.Close()
	if err := s.committer.writing.db.CheckLevels(nil); err != nil {
		t.Error(err)
	}
	for n := range crashThreads {
		key := threadKey(n)
		last := acknowledged[key.Thread]
		head, err := s.Head(t.Context(), key)
		if errors.Is(err, store.ErrNotFound) && last == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Next-1 < last {
			t.Errorf("%s ends with record %d, but %d was acknowledged", key, head.Next-1, last)
		}
		whole(t, s, head)
	}
}

// whole checks that the thread has all that its head says, so that no commit is
// there in part.
func whole(t testing.TB, s *Store, head *store.Head) {
	t.Helper()
	for _, text := range amiss(t, s, head) {
		t.Error(text)
	}
}

// amiss lists what a thread has that does not belong to its head.
func amiss(t testing.TB, s *Store, head *store.Head) (all []string) {
	t.Helper()
	records, err1 := s.Records(t.Context(), head.Key, store.Cursor{}, 1<<30)
	messages, err2 := s.Messages(t.Context(), head.Key)
	values, err3 := s.Values(t.Context(), head.Key, "k", "", 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	count := int(head.Next - 1)
	if len(records) != count || len(messages) != count || len(values) != min(count, 20) {
		all = append(all, fmt.Sprintf("%s has %d records, %d messages and %d values after %d commits", head.Key,
			len(records), len(messages), len(values), count))
	}
	for i, r := range records {
		if want := fmt.Sprintf("%s-%d", head.Key.Thread, i+1); string(r.Data) != want || r.Number != uint64(i+1) {
			all = append(all, fmt.Sprintf("record %d of %s is %d, %q", i+1, head.Key, r.Number, r.Data))
		}
	}
	if !strings.HasSuffix(string(head.State), head.ETag) {
		all = append(all, fmt.Sprintf("the state of %s is not that of its last commit", head.Key))
	}
	return all
}
