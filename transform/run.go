package transform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Transform plans changes to a snapshot, and stages and reports them on the view.
type Transform interface {
	Plan(ctx context.Context, v *View) error
}

// Options are the input, output and settings of [Run]. The zero value of each field but In and Out
// is the safe choice.
type Options struct {
	Command string    // in the report, "migrate calico-v3"
	In, Out string    // paths; Out must not exist, except for a dry run
	DryRun  bool      // plan, validate and report, write nothing
	Allow   []string  // codes of problems that do not refuse the run
	Time    time.Time // for new objects; zero: the newest time in the snapshot
	// Input, if set, is read instead of the file at In; In is then only the name. Run closes Input.
	Input *os.File
	// Upload, if set, publishes the output under the name Out instead of the file system. The
	// caller has checked that the name is unused.
	Upload func(file *os.File) error
	// Prefixes are storage prefixes, such as "/registry", that keys of the snapshot do not show.
	Prefixes []string
	// MaxExpand limits the expanded size in bytes of a compressed input, in the folder of Out, or
	// with Upload in os.TempDir; 0: snapshot.DefaultMaxExpand.
	MaxExpand int64
	// Encryption decrypts and encrypts values; nil without a configuration.
	Encryption Encrypter
	// BumpRevision is the number that the restore commands add to the revision; 0:
	// DefaultBumpRevision.
	BumpRevision int64
	// CountUIDs makes the report count UIDs and deleted objects, of which there may be very many,
	// instead of listing them.
	CountUIDs bool
	// Diff, if set, is called with the staged changes, sorted by key, and the granted leases,
	// before the first write of a run that is not refused. A change is valid until the next one. An
	// error fails the run.
	Diff func(ctx context.Context, in *inspect.Reader, changes iter.Seq2[snapshot.Change, error],
		granted []snapshot.Lease) error
	// Restores, if set, is called with the members in the snapshot before the plan. It returns the
	// names of those that the caller restores itself. The report has restore commands for the
	// others. An error fails the run.
	Restores func(members []snapshot.Member) (here []string, err error)
	// Progress, if set, is called with the name of each phase as the phase begins, and with a
	// function that returns the completed part of the phase, from 0 to 1; nil if unknown.
	Progress func(phase string, part func() float64)
}

// DefaultBumpRevision is etcd's advice for a cluster that ran for a week after its snapshot.
const DefaultBumpRevision = 1_000_000_000

var (
	// ErrOutIsIn is returned when the output is the input.
	ErrOutIsIn = finding.WithHint(errors.New("output is the input"),
		"an input is never changed; name another file for the output")
	// ErrRefused is returned if problems without permission refuse the run. Nothing was written.
	ErrRefused = errors.New("refused")
)

// maxRequest is the size in bytes beyond which a server refuses a write (etcd
// server/embed/config.go, DefaultMaxRequestBytes): a larger value is restored and served, but
// cannot be updated.
const maxRequest = 1_572_864 // bytes

// Run applies a transform to o.In and writes o.Out. The report is never nil, even for a refused run
// ([ErrRefused]) or a failed run. After any error o.Out does not exist.
func Run(ctx context.Context, o Options, t Transform) (*Report, error) {
	r := NewReport(o.Command, o.Allow...)
	r.Input.Path, r.CountUIDs = o.In, o.CountUIDs
	err := run(ctx, o, t, r)
	switch {
	case errors.Is(err, ErrRefused):
		r.Outcome, r.Appendix = Refused, nil
	case err != nil:
		r.Outcome, r.Error, r.Output, r.Appendix = Failed, err.Error(), nil, nil
	}
	return r, err
}

func run(ctx context.Context, o Options, t Transform, r *Report) error {
	if o.Input != nil {
		defer o.Input.Close()
	}
	if o.Upload == nil {
		if err := checkPaths(o.In, o.Out); err != nil && !(o.DryRun && errors.Is(err, fs.ErrExist)) {
			return err
		}
	}
	o.phase("read", nil)
	src, err := snapshot.Open(ctx, o.In, snapshot.Config{MaxExpand: o.MaxExpand, ScratchDir: o.folder(), File: o.Input})
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	v := newView(src, o, r)
	defer func() { _ = v.plan.close() }()
	for _, odd := range OddFile(src) {
		r.Raise("", odd)
	}
	if err := o.whoRestores(ctx, v); err != nil {
		return err
	}
	if !o.DryRun {
		out, err := o.create()
		if err != nil {
			return err
		}
		v.draft = snapshot.Begin(o.Out, out, src)
		defer func() { _ = v.draft.Discard() }()
	}
	o.phase("plan", func() float64 { return src.Progress(3, 1) }) // migrations read at most three times
	planErr := src.Guard(func() error {
		if _, err := v.Layouts(ctx); err != nil {
			return err
		}
		if v.draft != nil {
			v.draft.Copy() // now that the index is built, for which the plan waits
		}
		return t.Plan(ctx, v)
	})
	if r.Input, err = src.Info(ctx); err != nil { // a wrong digest explains all other errors
		return err
	}
	if about := (*snapshot.FileError)(nil); errors.As(planErr, &about) {
		return planErr // the error names its file, which may be another file
	}
	if planErr != nil {
		return fmt.Errorf("%s: %w", o.In, planErr)
	}
	if o.BumpRevision == 0 {
		o.BumpRevision = DefaultBumpRevision
	}
	if err := v.close(o, r); err != nil {
		return err
	}
	if o.Diff != nil {
		if err := src.Guard(func() error { return o.Diff(ctx, v.reader, v.plan.byKey(), v.grants) }); err != nil {
			return err
		}
	}
	if o.DryRun {
		r.Outcome = Planned
		return src.Sound(ctx) // checks as a writing run would
	}
	return v.write(ctx, o, r)
}

// whoRestores asks the caller which members it restores.
func (o Options) whoRestores(ctx context.Context, v *View) error {
	if o.Restores == nil {
		return nil
	}
	cluster, err := v.src.Cluster(ctx)
	if err == nil {
		v.here, err = o.Restores(cluster.Members)
	}
	return err
}

func newView(src *snapshot.Snapshot, o Options, r *Report) *View {
	undecryptable := new(sync.Map)
	v := &View{
		overlay: &overlay{
			src: src, encrypter: o.Encryption, plan: newPlan(o.folder()), prefixes: o.Prefixes,
			undecryptable: undecryptable,
		},
		findings: &findings{report: r, problems: map[problemID]int{}, undecryptable: undecryptable},
		leases:   &leases{file: src, granted: map[snapshot.Lease]int64{}},
		time:     o.Time,
	}
	v.reader = v.readerOf(src)
	return v
}

func (o Options) phase(name string, part func() float64) {
	if o.Progress != nil {
		o.Progress(name, part)
	}
}

// create creates the output.
func (o Options) create() (*publish.File, error) {
	if o.Upload != nil {
		return publish.CreateElsewhere(o.Out, o.Upload)
	}
	return publish.Create(o.Out)
}

// folder returns the folder for scratch files: the folder of the output, which has the space.
func (o Options) folder() string {
	if o.Upload != nil {
		return os.TempDir()
	}
	return filepath.Dir(o.Out)
}

// checkPaths refuses an output that exists or cannot be created, before the input is read.
func checkPaths(in, out string) error {
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		f, err := publish.Create(out)
		if err != nil {
			return err
		}
		return f.Discard()
	} else if err != nil {
		return err
	}
	if given, err := os.Stat(in); err == nil {
		if same, err := os.Stat(out); err == nil && os.SameFile(given, same) {
			return fmt.Errorf("%s: %w", out, ErrOutIsIn)
		}
	}
	return &fs.PathError{Op: "create", Path: out, Err: fs.ErrExist}
}

// OddFile returns warnings about the format of a snapshot file.
func OddFile(s *snapshot.Snapshot) (warnings []*finding.Finding) {
	for i, w := range s.Warnings() {
		code := CodeRawFile
		switch {
		case s.DataDir() != nil:
			code = CodeDataDir
		case i == 0 && s.Compression() != "":
			code = CodeCompressed
		}
		warnings = append(warnings, code.Because("%s", w))
	}
	if err := s.FreeList(); err != nil {
		warnings = append(warnings, CodeFreeList.Because("%v; an output stores none", err))
	}
	return warnings
}

// close ends the plan, counts the changes, and refuses the run for its problems.
func (v *View) close(o Options, r *Report) error {
	r.Changes = v.plan.count()
	if t := v.time; !t.IsZero() {
		r.Time = t.UTC().Format(time.RFC3339)
	}
	for st := range v.plan.all() {
		if st.size > maxRequest {
			key, err := v.plan.key(st)
			if err != nil {
				return err
			}
			v.Raise(string(key), CodeLargeValue.Because(
				"%d bytes are more than the %d a server accepts in a write: it can be read and deleted, not updated",
				st.size, maxRequest))
		}
	}
	if !v.noUse {
		v.checkBump(o, r)
	}
	if _, refusing := r.Errors(); refusing > 0 {
		return fmt.Errorf("%w: problems: %d", ErrRefused, refusing)
	}
	return nil
}

// checkBump refuses a bump that leaves the restored store too few revisions.
func (v *View) checkBump(o Options, r *Report) {
	last := r.Input.Revision + int64(v.plan.planned) + 1 // one more for a scrub
	if most := snapshot.MostBump(last); o.BumpRevision > most {
		r.Raise("", CodeBumpTooLarge.Because(
			"the store is at revision %d: a restore that raises it by %d leaves a server too few for its writes; "+
				"--bump-revision %d is the most that fits",
			r.Input.Revision, o.BumpRevision, most))
	}
}

// write writes the output: a new file, or a changed copy of the input with the commands for its
// restore.
func (v *View) write(ctx context.Context, o Options, r *Report) error {
	var check func(context.Context, *snapshot.Snapshot) error
	if len(v.checks) > 0 {
		check = func(ctx context.Context, out *snapshot.Snapshot) error {
			o.phase("check", func() float64 { return out.Progress(1, 1) })
			return out.Guard(func() error { return v.CheckOutput(ctx, v.readerOf(out)) })
		}
	}
	if v.built != nil {
		o.phase("write", nil)
		res, err := v.draft.Write(ctx, nil, snapshot.WriteConfig{Build: v.built, Check: check})
		if err := r.written(o, res, err); err != nil || v.noUse {
			return err
		}
		r.addRestore(o, nil, v.here) // a built file has no members
		return nil
	}
	cluster, err := v.src.Cluster(ctx)
	if err != nil {
		return err
	}
	o.phase("write", v.draft.Progress)
	res, err := v.draft.Write(ctx, v.plan.changes(), snapshot.WriteConfig{Leases: v.grants, Scrub: v.scrub(),
		Compact: v.compact, Check: check})
	if err := r.written(o, res, err); err != nil {
		return err
	}
	same := res.Appended == 0 && res.Scrubbed == 0 && v.src.FreeList() == nil
	if v.compact != nil {
		same = r.Output.SHA256 == r.Input.SHA256
	}
	if same {
		r.Outcome = Unchanged
	}
	if !v.noUse {
		r.addRestore(o, cluster.Members, v.here)
	}
	return nil
}

func (r *Report) written(o Options, res snapshot.WriteResult, err error) error {
	if err != nil {
		return err
	}
	r.Outcome = Written
	r.Output = &res.FileInfo
	return nil
}

func (v *overlay) readerOf(s *snapshot.Snapshot) *inspect.Reader {
	if v.encrypter == nil { // a nil Encrypter in another interface would not be nil
		return inspect.NewReader(s, nil, v.prefixes...)
	}
	return inspect.NewReader(s, v.encrypter, v.prefixes...)
}
