package compact

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Compact removes history, including records superseded by earlier steps of the run.
type Compact struct {
	Keep   int64 // revisions kept below the last revision
	Disarm bool  // remove NOSPACE alarms
}

// codeAlready reports a compaction that etcd refuses with ErrCompacted.
var codeAlready = finding.Lookup("already-compacted")

// Plan stages the compaction, and later examines the written output.
func (c *Compact) Plan(ctx context.Context, v *transform.View) error {
	v.Make(transform.Output{Compact: &snapshot.Compaction{Keep: c.Keep, Disarm: c.Disarm}})
	src := v.Reader().Snapshot() // the input file; staged records are counted by their revisions
	oldest, _, err := src.Kept(ctx)
	if err != nil {
		return err
	}
	last, err := v.Revision(ctx)
	if err != nil {
		return err
	}
	if last-c.Keep < oldest {
		v.Raise("", codeAlready.Because("the file keeps revisions %d to %d: --keep-revisions %d is the most", oldest,
			last, last-oldest))
	}
	before, err := src.Counts(ctx)
	if err != nil {
		return err
	}
	s := &Summary{Revision: max(last-c.Keep, oldest), Before: stored(before)}
	v.Report().Sections = append(v.Report().Sections, &Section{s})
	v.Make(transform.Output{Check: func(ctx context.Context, out *inspect.Reader) error {
		after, err := out.Snapshot().Counts(ctx)
		if err == nil {
			s.After = new(stored(after))
			s.Revision = s.After.CompactRevision
		}
		return err
	}})
	c.addSteps(v.Report(), before.Alarms)
	return nil
}

func (c *Compact) addSteps(r *transform.Report, alarms []snapshot.Raised) {
	for _, a := range alarms {
		switch {
		case a.Kind != snapshot.AlarmNoSpace:
			r.AddStep("the restored etcd has the alarm %s of member %s: find out why, then \"etcdctl alarm disarm\"",
				a.Kind, a.Member)
		case !c.Disarm:
			r.AddStep("the restored etcd has the alarm NOSPACE and takes no writes: run again with --disarm, or " +
				"\"etcdctl alarm disarm\" after the start")
		}
	}
}
