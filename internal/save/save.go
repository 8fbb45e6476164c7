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

// DefaultMaxLag is the default limit in raft entries: more than a busy Kubernetes cluster writes
// while all members are asked for their status.
const DefaultMaxLag = 1000

// Options configures Run.
type Options struct {
	Etcd   *clientv3.ConfigSpec // endpoints, certificates, user and timeouts, as for etcdctl
	MaxLag uint64               // maximum number of raft entries behind the newest member

	Tell     func(line string)       // receives a line about the chosen member and each rejected member; may be nil
	Received func(done, total int64) // receives the progress of the download; may be nil

	Create func(path string) (*publish.File, error) // creates the file; nil: publish.Create

	patience time.Duration // maximum pause in a download; 0: a minute
	pause    time.Duration // between two rounds over all members; 0: a second
}

// rounds is the maximum number of attempts over all members if downloads fail.
const rounds = 3

// Result describes a saved snapshot.
type Result struct {
	snapshot.FileInfo
	Member   Member    // source of the snapshot
	Refused  []Untaken // unsuitable members
	Failed   []Untaken // interrupted downloads, in order
	Warnings []string
}

// Untaken is an endpoint without a saved snapshot.
type Untaken struct {
	Endpoint string `json:"endpoint"`
	ID       string `json:"id,omitempty"` // of the member, lower-case hex, if known
	Reason   string `json:"reason"`
	err      error
}

// Error lists the failed endpoints.
type Error struct{ Untaken []Untaken }

// Error returns a line for each endpoint and reason.
func (e *Error) Error() string {
	lines := []string{"no snapshot was taken"}
	for _, u := range e.Untaken {
		if line := u.Endpoint + ": " + u.Reason; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Hint returns the hint of the first reason with a hint.
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

// Run takes a snapshot and publishes it at path, which must not exist. An [Error] lists the reason
// for each failed member.
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
	cfg.DialTimeout = cmp.Or(cfg.DialTimeout, 2*time.Second) // default of etcdctl
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

// saver is the state of one run.
type saver struct {
	Options
	config clientv3.Config
	path   string
	file   *os.File
	failed []Untaken
}

// save tries all members, in several rounds if downloads are interrupted.
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

// round requests the status of all members, and downloads from the first suitable member that
// succeeds. An error concerns the disk or ends the run for another reason.
func (s *saver) round(ctx context.Context) (r *Result, refused []Untaken, err error) {
	members := s.requestStatus(ctx)
	defer closeAll(members)
	fit, refused, err := s.choose(members)
	if err != nil || ctx.Err() != nil {
		return nil, refused, cmp.Or(ctx.Err(), err)
	}
	if fit != nil { // otherwise the error lists the reasons
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

// isLocal reports whether err concerns the file, not a member.
func isLocal(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) || errors.Is(err, errDisk)
}
