package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/snapshot"
)

// ErrDiffers is the error for a restored database with other content than the snapshot.
var ErrDiffers = errors.New("the restored database differs from the snapshot")

// Member is one member of the restored cluster.
type Member struct {
	Name     string
	PeerURLs []string
	// DataDir receives the folder "member". WALDir, which must not exist, is the folder of the log;
	// "" for member/wal in DataDir.
	DataDir, WALDir string
}

// Options configure a restore.
type Options struct {
	Members []Member // restored here; at least one
	// Cluster has all members as NAME=URL,NAME=URL, and Token names the cluster.
	Cluster, Token string
	// Bump is N of "--bump-revision N --mark-compacted"; 0 means neither.
	Bump int64
	// MoveAside keeps an existing folder "member" under another name instead of refusing it.
	MoveAside bool
	// SkipDigest restores a snapshot with a wrong digest; all else is still checked.
	SkipDigest bool
	// Owner owns the new files; nil for the owner of an existing data directory.
	Owner *Owner
	// Verified restores a snapshot that this process has just written and verified.
	Verified bool
	// Phase, if set, is called with the name of each step.
	Phase func(name string)
}

// Result describes the restored members.
type Result struct {
	Revision int64      `json:"revision"` // of a server on the restored database
	HashKV   string     `json:"hashKV"`   // of that server, as in "etcdctl endpoint hashkv"
	Members  []Restored `json:"members"`
}

// Restored is a restored member.
type Restored struct {
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	DataDir  string   `json:"dataDir"` // absolute
	WALDir   string   `json:"walDir,omitempty"`
	MovedTo  string   `json:"movedTo,omitempty"` // the path of the old folder "member"
	Mode     string   `json:"mode,omitempty"`    // of an existing data directory, if etcd warns about it
}

// Prepared is a restore into checked data directories.
type Prepared struct {
	Options
	places []*place
}

// Prepare checks the data directories of the members; their names may follow.
func Prepare(o Options) (p *Prepared, err error) {
	p = &Prepared{Options: o}
	for _, m := range o.Members {
		place, err := prepare(m, o)
		if place != nil {
			p.places = append(p.places, place)
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// Scratch returns a private folder on the disk of the first data directory, which Close removes.
func (p *Prepared) Scratch() string { return p.places[0].hidden }

// Close removes all but the restored members.
func (p *Prepared) Close() (err error) {
	for _, place := range slices.Backward(p.places) { // the first may have created a parent of the others
		err = errors.Join(err, place.clean())
	}
	return err
}

// Run restores the members, named by Members. Before the first appears, all are complete. After an
// error, nothing has appeared.
func (p *Prepared) Run(ctx context.Context, s *snapshot.Snapshot) (*Result, error) {
	for i, m := range p.Members {
		p.places[i].Name, p.places[i].PeerURLs = m.Name, m.PeerURLs
	}
	if !p.Verified {
		p.phase("verifying")
		if err := p.verify(ctx, s); err != nil {
			return nil, err
		}
	}
	expected, err := s.Restored(ctx, p.Bump)
	if err != nil {
		return nil, err
	}
	if err := p.fill(ctx, s, p.places); err != nil {
		return nil, err
	}
	r := &Result{Revision: expected.Revision, HashKV: fmt.Sprint(expected.HashKV)}
	for _, place := range p.places {
		p.phase("checking " + place.DataDir)
		if err := place.check(ctx, expected); err != nil {
			return nil, err
		}
		if err := place.settle(); err != nil {
			return nil, err
		}
	}
	return r, publish(p.places, r)
}

// Run prepares and restores the members.
func Run(ctx context.Context, s *snapshot.Snapshot, o Options) (_ *Result, err error) {
	p, err := Prepare(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.Run(ctx, s)
}

// publish lets all members appear. After an error none is there.
func publish(places []*place, r *Result) (err error) {
	var done renames
	for _, p := range places {
		one, renamed, err := p.publish()
		done = append(done, renamed...)
		if err != nil {
			return errors.Join(err, done.undo())
		}
		r.Members = append(r.Members, one)
	}
	for _, p := range places {
		p.created, p.hiddenWAL = nil, ""
	}
	return nil
}

func (o *Options) phase(name string) {
	if o.Phase != nil {
		o.Phase(name)
	}
}

// verify returns the first finding of [snapshot.Verify] as an error; others may follow.
func (o *Options) verify(ctx context.Context, s *snapshot.Snapshot) error {
	for found := range snapshot.Verify(ctx, s) {
		if o.SkipDigest && errors.Is(found, snapshot.ErrDigest) {
			continue
		}
		hint := "\"etcdshift verify\" lists the damage; etcdutl restores some damaged files, with wrong or missing " +
			"records"
		if errors.Is(found, snapshot.ErrDigest) {
			hint = "the file changed after it was saved; --skip-hash-check restores it if all else is sound"
		}
		return finding.WithHint(found, hint)
	}
	return ctx.Err()
}

// fill restores all members into their hidden folders.
func (o *Options) fill(ctx context.Context, s *snapshot.Snapshot, places []*place) (err error) {
	box, err := sandbox.New("", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	path, err := sandbox.PlainFile(places[0].hidden, s)
	if err != nil {
		return err
	}
	most := sandbox.RestoreTime(s.Image().Size())
	for _, p := range places {
		o.phase("restoring " + p.DataDir)
		within, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("the restore has not ended after %s", most))
		err := sandbox.RestoreMember(within, box, path, sandbox.MemberRestore{
			Name: p.Name, PeerURLs: p.PeerURLs, Cluster: o.Cluster, Token: o.Token, Bump: uint64(o.Bump),
			DataDir: p.restored(), WALDir: p.hiddenWAL, SkipHashCheck: o.Verified || o.SkipDigest || !s.HasDigest(),
		})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
