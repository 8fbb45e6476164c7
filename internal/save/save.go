package save

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot"
)

// DefaultMaxLag is the lag that is allowed by default, in raft entries: more than a busy
// Kubernetes cluster writes while all members are asked for their status.
const DefaultMaxLag = 1000

// Options configures Run.
type Options struct {
	Etcd   *clientv3.ConfigSpec // endpoints, certificates, user and times, as etcdctl has them
	MaxLag uint64               // raft entries that a member may be behind the newest that was seen

	Tell     func(line string)       // told of the member that is taken, and of those that are not; nil: no one
	Received func(done, total int64) // told of the bytes of the download; nil: no one

	Create func(path string) (*publish.File, error) // begins the file; nil: publish.Create

	patience time.Duration // how long a download may stand still; 0: a minute
	pause    time.Duration // between two rounds over all members; 0: a second
}

// rounds is how often all members are tried if downloads break off.
const rounds = 3

// Result is what was saved.
type Result struct {
	snapshot.FileInfo
	Member   Member    // the one whose snapshot it is
	Refused  []Untaken // members that did not fit
	Failed   []Untaken // downloads that broke off, in order
	Warnings []string
}

// Untaken is an endpoint whose snapshot was not taken.
type Untaken struct {
	Endpoint string `json:"endpoint"`
	ID       string `json:"id,omitempty"` // of the member, lower-case hex, if it told
	Reason   string `json:"reason"`
	err      error
}

// Error lists the endpoints, none of which gave a snapshot.
type Error struct{ Untaken []Untaken }

// Error has a line for each endpoint and reason.
func (e *Error) Error() string {
	lines := []string{"no snapshot was taken"}
	for _, u := range e.Untaken {
		if line := u.Endpoint + ": " + u.Reason; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Hint returns that of the first reason that has one.
func (e *Error) Hint() string {
	return cmp.Or(finding.Hint(errors.Join(e.Unwrap()...)),
		"the flags are those of etcdctl: try --endpoints, --cacert, --cert, --key and --user with \"etcdctl "+
			"endpoint status\"")
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() (reasons []error) {
	for _, u := range e.Untaken {
		reasons = append(reasons, u.err)
	}
	return reasons
}

// Run takes a snapshot and publishes it at path, which must not exist. An [Error] lists why no
// member gave one.
func Run(ctx context.Context, path string, o Options) (*Result, error) {
	create := publish.Create
	if o.Create != nil {
		create = o.Create
	}
	file, err := create(path)
	if err != nil {
		return nil, err
	}
	defer file.Discard()
	cfg, err := clientv3.NewClientConfig(o.Etcd, zap.NewNop())
	if err != nil {
		return nil, fmt.Errorf("certificates of the client: %w", err)
	}
	cfg.DialTimeout = cmp.Or(cfg.DialTimeout, 2*time.Second) // that of etcdctl
	o.patience, o.pause = cmp.Or(o.patience, time.Minute), cmp.Or(o.pause, time.Second)
	s := &saver{Options: o, config: *cfg, path: path, file: file.File()}
	r, err := s.save(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r, file.Publish()
}

// saver is one run.
type saver struct {
	Options
	config clientv3.Config
	path   string
	file   *os.File
	failed []Untaken
}

// save tries all members, and again while downloads break off.
func (s *saver) save(ctx context.Context) (*Result, error) {
	for round := 1; ; round++ {
		before := len(s.failed)
		r, refused, err := s.round(ctx)
		if r != nil || err != nil {
			return r, err
		}
		if round == rounds || len(s.failed) == before {
			return nil, &Error{slices.Concat(refused, s.failed)}
		}
		select {
		case <-time.After(s.pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// round asks all members for their status, and downloads from the first that fits and does not
// fail. An error is about the disk, or ends the run for another reason.
func (s *saver) round(ctx context.Context) (r *Result, refused []Untaken, err error) {
	members := s.ask(ctx)
	defer closeAll(members)
	fit, refused, err := s.choose(members)
	if err != nil || ctx.Err() != nil {
		return nil, refused, cmp.Or(ctx.Err(), err)
	}
	if fit != nil { // else the error says so
		for _, u := range refused {
			s.tell("%s is not taken: %s", u.Endpoint, u.Reason)
		}
	}
	for _, m := range fit {
		r, err := s.take(ctx, m)
		switch {
		case err == nil:
			r.Refused, r.Failed, r.Warnings = refused, s.failed, append(r.Warnings, warnings(members)...)
			return r, refused, nil
		case ctx.Err() != nil, isLocal(err):
			return nil, refused, err
		}
		u := m.untaken(err)
		if permanent(err) {
			refused = append(refused, u)
		} else {
			s.failed = append(s.failed, u)
		}
		s.tell("%s failed: %s", u.Endpoint, u.Reason)
	}
	return nil, refused, nil
}

// take takes the snapshot of one member.
func (s *saver) take(ctx context.Context, m *member) (*Result, error) {
	if err := m.catchUp(ctx); err != nil {
		return nil, err
	}
	s.tell("saving %s", m.describe())
	sum, err := s.download(ctx, m)
	if err != nil {
		return nil, err
	}
	return s.check(ctx, m, sum)
}

func (s *saver) tell(format string, args ...any) {
	if s.Tell != nil {
		s.Tell(fmt.Sprintf(format, args...))
	}
}

// isLocal reports whether err is of the file, not of a member.
func isLocal(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) || errors.Is(err, errDisk)
}
