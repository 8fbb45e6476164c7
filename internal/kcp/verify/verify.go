// Package verify checks a whole move of logical clusters by the files that it left.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Move is a move of logical clusters between two shards, as files. Its snapshots stay open while it
// is checked.
type Move struct {
	Archive        *inspect.Reader
	OriginOut      *inspect.Reader // what kcp purge made
	DestinationOut *inspect.Reader // what kcp import made
	Origin         *inspect.Reader // what purge was given; nil where it is not at hand
	Destination    *inspect.Reader // what import was given; nil where it is not at hand
	Caches         []*inspect.Reader
	CachesBefore   []*inspect.Reader // what the purge of each of Caches was given; shorter, or nil, where it is not at hand
	Prefixes       []string          // of the destination's storage, where its file has several
	FromShard      string            // the origin's name, where the archive does not say
	AsShard        string            // the destination's name, where its file does not say
	Ignore         []string          // codes to leave out, of those that are Ignorable
	// Configured: an encryption configuration of the destination is given, and has to decrypt every
	// value that was moved.
	Configured bool
}

// Verdict is the result of checking a move.
type Verdict struct {
	From      string // name of the shard; "" where nothing says it
	To        string
	Clusters  []Moved
	Answers   []Answer  // one a question, in the order of Questions
	Findings  []Finding // by code, in the order of Codes, file and key
	Unchecked []Finding // what nobody can tell from the files; they have no code
	Notes     []string  // what a person should know that is no finding
}

// Moved is a logical cluster of the move.
type Moved struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Keys int    `json:"keys"`
}

// Answer is the answer to one question.
type Answer struct {
	Question Question `json:"question"`
	Answer   string   `json:"answer"`  // "no", "yes" or "unknown"
	Checked  int      `json:"checked"` // records that were looked at; of QuestionDamaged files
	Findings int      `json:"findings"`
}

// Finding is a difference from a sound move.
type Finding struct {
	finding.Finding // with no key where it is about the file, or a logical cluster, as a whole
	Question        Question
	File            string // the path of the file it was found in
}

// Sound tells whether everything was checked and nothing found: the answer to each question is
// "no".
func (v *Verdict) Sound() bool {
	if len(v.Findings)+len(v.Unchecked) > 0 || len(v.Answers) != len(Questions()) {
		return false
	}
	return !slices.ContainsFunc(v.Answers, func(a Answer) bool { return a.Answer != "no" })
}

// ErrFromShard is returned for an archive of another shard than Move.FromShard.
var ErrFromShard = errors.New("the archive is of another shard")

// errStop ends a check whose findings leave nothing more to compare.
var errStop = errors.New("nothing more can be checked")

// Verify checks a move. Findings, damaged files among them, are in the Verdict. An error means that
// a file is no archive or no shard of kcp, or cannot be read.
//
// Memory grows with the records of the archive, without their values, and with the findings.
func (m Move) Verify(ctx context.Context) (*Verdict, error) {
	f := newFindings()
	c, err := m.read(ctx, f)
	if err == nil {
		err = c.check()
	}
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return f.finish(m.Ignore, c != nil), nil
}

// Damaged is the verdict on a file that is too damaged to be opened; err says how.
func Damaged(path string, err error) *Verdict {
	f := newFindings()
	f.checked[QuestionDamaged] = 1
	f.found(codeDamaged, &file{path: path}, "", "%v", err)
	return f.finish(nil, false)
}

func (c *checker) check() error {
	for _, step := range []func(){
		c.checkDestination, c.checkDefinitions, c.checkIdentities, c.checkServing, c.checkOwners,
		c.checkOrigin, c.checkDoubled, c.checkCopies, c.checkRests,
	} {
		if step(); c.Failed(c.Ctx.Err()) {
			break
		}
	}
	return c.Err
}

// get returns the live record of a key; nil for none, and after an error.
func (c *checker) get(in *file, key []byte) *snapshot.Record {
	rec, err := in.Snapshot().Get(c.Ctx, key)
	if c.Failed(err) {
		return nil
	}
	return rec
}

// findings collects the results of a check.
type findings struct {
	Verdict
	checked map[Question]int
	about   map[[3]string]bool // code, file and key of each finding
}

func newFindings() *findings {
	return &findings{Verdict: Verdict{Clusters: []Moved{}, Notes: []string{}}, checked: map[Question]int{}, about: map[[3]string]bool{}}
}

// found adds a finding. Of two findings with one code and key, the first stays.
func (f *findings) found(code *finding.Code, in *file, key, format string, args ...any) {
	at := [3]string{code.Name, in.path, key}
	if key != "" && f.about[at] {
		return
	}
	f.about[at] = true
	f.Findings = append(f.Findings, Finding{*code.Because(format, args...).At(key), question(code), in.path})
}

func (f *findings) unchecked(q Question, in *file, key string, reason any) {
	f.Unchecked = append(f.Unchecked, Finding{finding.Finding{Key: key, Reason: fmt.Sprint(reason)}, q, in.path})
}

func (f *findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// finish sorts the findings and answers the questions. If the files could not be compared, it
// answers only QuestionDamaged.
func (f *findings) finish(ignore []string, compared bool) *Verdict {
	f.Findings = slices.DeleteFunc(f.Findings, func(one Finding) bool {
		return one.Question != QuestionDamaged && slices.Contains(ignore, one.Code.Name)
	})
	all := Codes()
	slices.SortStableFunc(f.Findings, func(a, b Finding) int {
		return cmp.Or(slices.Index(all, a.Code)-slices.Index(all, b.Code), cmp.Compare(a.File, b.File), cmp.Compare(a.Key, b.Key))
	})
	for _, q := range Questions() {
		a := Answer{Question: q, Answer: "no", Checked: f.checked[q]}
		if !compared && q != QuestionDamaged || slices.ContainsFunc(f.Unchecked, func(u Finding) bool { return u.Question == q }) {
			a.Answer = "unknown"
		}
		for _, one := range f.Findings {
			if one.Question == q {
				a.Answer = "yes"
				a.Findings++
			}
		}
		f.Answers = append(f.Answers, a)
	}
	return &f.Verdict
}
