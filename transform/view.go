package transform

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/snapshot"
)

// Entry is the latest value of a key, as stored or as staged. Its bytes are valid until the view is closed and must not be
// written to.
type Entry struct {
	Key, Value  []byte
	ModRevision int64 // 0 for a key that is only staged
	Lease       int64
}

// View is a snapshot with changes staged on top of it. It is not safe for concurrent use.
type View struct {
	src      *snapshot.Snapshot
	plan     *plan
	report   *Report
	allow    map[string]bool
	problems map[problemID]int // place in the report
	time     time.Time
}

// Live yields the latest value of each key that begins with prefix: first those of the file in revision order, with staged
// changes applied, then keys that are only staged, in the order they were staged. What is staged while the sequence runs is
// seen where the scan has not passed yet.
func (v *View) Live(ctx context.Context, prefix []byte) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for rec, err := range v.src.Live(ctx, prefix) {
			if err != nil {
				yield(nil, err)
				return
			}
			e := &Entry{Key: rec.Key, Value: rec.Value, ModRevision: rec.ModRevision, Lease: rec.Lease}
			if st := v.plan.get(rec.Key); st != nil {
				if st.delete {
					continue
				}
				if e.Value, err = v.plan.value(st); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(e, nil) {
				return
			}
		}
		v.liveStaged(prefix, yield)
	}
}

// liveStaged yields the keys that only the plan has.
func (v *View) liveStaged(prefix []byte, yield func(*Entry, error) bool) {
	for i := 0; i < len(v.plan.order); i++ {
		st := v.plan.order[i]
		if st.prior != 0 || st.delete || !bytes.HasPrefix([]byte(st.key), prefix) {
			continue
		}
		value, err := v.plan.value(st)
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(&Entry{Key: []byte(st.key), Value: value}, nil) {
			return
		}
	}
}

// Get returns the latest value of key, nil when there is none.
func (v *View) Get(ctx context.Context, key []byte) (*Entry, error) {
	if st := v.plan.get(key); st != nil {
		if st.delete {
			return nil, nil
		}
		value, err := v.plan.value(st)
		return &Entry{Key: key, Value: value, ModRevision: st.prior, Lease: st.lease}, err
	}
	rec, err := v.src.Get(ctx, key)
	if rec == nil || err != nil {
		return nil, err
	}
	return &Entry{Key: rec.Key, Value: rec.Value, ModRevision: rec.ModRevision, Lease: rec.Lease}, nil
}

// Put stages value for key. A lease stays attached as it was. Staging the value that is stored already stages nothing. why is
// a reason a person can read.
func (v *View) Put(ctx context.Context, key, value []byte, why string) error {
	if len(key) == 0 || len(value) == 0 {
		return fmt.Errorf("stage %q: key and value must not be empty", key)
	}
	return v.stage(ctx, key, value, false, why)
}

// Delete stages the deletion of key; of a key that is not there it stages nothing, as a live server does.
func (v *View) Delete(ctx context.Context, key []byte, why string) error {
	return v.stage(ctx, key, nil, true, why)
}

func (v *View) stage(ctx context.Context, key, value []byte, del bool, why string) error {
	rec, err := v.src.Get(ctx, key)
	if err != nil {
		return err
	}
	st := &staged{key: string(key), delete: del, why: why}
	if rec != nil {
		st.prior, st.lease = rec.ModRevision, rec.Lease
	}
	same := !del && rec != nil && bytes.Equal(rec.Value, value)
	if same || (del && rec == nil) {
		v.plan.drop(st.key)
		return nil
	}
	return v.plan.put(st, value)
}

// Time is what a new object gets as its time: Options.Time, else the newest creationTimestamp in the snapshot, found by one
// scan when it is first asked for; never the clock.
func (v *View) Time(ctx context.Context) (time.Time, error) {
	if !v.time.IsZero() {
		return v.time, nil
	}
	for rec, err := range v.src.Live(ctx, nil) {
		if err != nil {
			return time.Time{}, err
		}
		if t := creationTime(rec.Value); t.After(v.time) {
			v.time = t
		}
	}
	return v.time, nil
}

// InputDigest is the SHA-256 of the input's image, for UIDs that must be the same at each run. It waits for the pass over
// the input.
func (v *View) InputDigest(ctx context.Context) ([32]byte, error) {
	d, err := v.src.Digest(ctx)
	return d.Image, err
}

// Refuse reports an error-level problem of a record. It returns true when the code was allowed: then the record is to be
// left alone and the run goes on.
func (v *View) Refuse(key, code, reason string) (allowed bool) {
	p := Problem{Key: key, Code: code, Level: LevelError, Reason: reason, Decision: decisionRefused}
	if v.allow[code] {
		p.Decision = decisionAllowed
	}
	v.add(p)
	return v.allow[code]
}

// Resolve reports an error-level problem that an option of the run settled: decision says how. The run is not refused for it.
func (v *View) Resolve(key, code, reason, decision string) {
	v.add(Problem{Key: key, Code: code, Level: LevelWarning, Reason: reason, Decision: decision})
}

// Warn reports a warning.
func (v *View) Warn(key, code, reason string) {
	v.Resolve(key, code, reason, decisionNoted)
}

// add reports p. What is found of one record in several places is one problem with all reasons.
func (v *View) add(p Problem) {
	id := problemID{p.Key, p.Code, p.Level, p.Decision}
	at, there := v.problems[id]
	if !there || p.Key == "" {
		v.problems[id] = len(v.report.Problems)
		v.report.Problems = append(v.report.Problems, p)
		return
	}
	old := &v.report.Problems[at]
	if slices.Contains(strings.Split(old.Reason, reasonSeparator), p.Reason) || len(old.Reason) > maxReasons {
		return
	}
	old.Reason += reasonSeparator + p.Reason
}

const (
	reasonSeparator = "; "
	// maxReasons is how many bytes of reasons a problem gathers.
	maxReasons = 4096
)

// problemID is what makes two findings one problem.
type problemID struct{ key, code, level, decision string }

// Allowed says whether problems of that code are to be left alone.
func (v *View) Allowed(code string) bool { return v.allow[code] }

// Report is the report of the run, for what only the transform knows.
func (v *View) Report() *Report { return v.report }
