package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Level grades a finding.
type Level string

// The levels. An error is sure to hurt; a warning hurts or may, depending on what the file does not show; an info is worth
// knowing before a restore.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// rank is higher for what is worse.
func (l Level) rank() int { return slices.Index([]Level{Info, Warning, Error}, l) }

// Finding is one thing that will hurt.
type Finding struct {
	Code    Code   `json:"code"`
	Level   Level  `json:"level"`
	Key     string `json:"key,omitempty"` // in etcd; "" where it is about the file
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	// Objects is how many objects it is about, of which Key is the first, where it is about several.
	Objects int `json:"objects,omitempty"`
}

// MaxFindings is how many findings of one code are kept.
const MaxFindings = 1000

// Report is what was found.
type Report struct {
	Findings []Finding    `json:"findings"` // the worst first, then by code and key
	Counts   map[Code]int `json:"counts"`   // how many there are of each code, those beyond MaxFindings too
}

// Worst is the highest level of the findings; "" without any.
func (r *Report) Worst() (worst Level) {
	for _, f := range r.Findings {
		if worst == "" || f.Level.rank() > worst.rank() {
			worst = f.Level
		}
	}
	return worst
}

// AtLeast says whether any finding is of the level, or worse.
func (r *Report) AtLeast(level Level) bool {
	worst := r.Worst()
	return worst != "" && worst.rank() >= level.rank()
}

// Count is how many findings are of a level.
func (r *Report) Count(level Level) (n int) {
	for code, count := range r.Counts {
		if code.Level() == level {
			n += count
		}
	}
	return n
}

// findings collects a report.
type findings struct {
	ignored map[Code]bool
	list    map[Code][]Finding
	counts  map[Code]int
}

func newFindings(ignored []Code) *findings {
	f := &findings{ignored: map[Code]bool{}, list: map[Code][]Finding{}, counts: map[Code]int{}}
	for _, code := range ignored {
		f.ignored[code] = true
	}
	return f
}

// about adds a finding about one key, or about the file where key is empty.
func (f *findings) about(code Code, key []byte, format string, args ...any) {
	f.of(code, 0, key, format, args...)
}

// of adds a finding about several objects, of which key is the first.
func (f *findings) of(code Code, objects int, key []byte, format string, args ...any) {
	if f.ignored[code] {
		return
	}
	f.counts[code]++
	if len(f.list[code]) < MaxFindings {
		f.list[code] = append(f.list[code], Finding{
			Code: code, Level: code.Level(), Key: string(key), Message: fmt.Sprintf(format, args...), Remedy: code.Remedy(), Objects: objects,
		})
	}
}

func (f *findings) report() *Report {
	r := &Report{Findings: []Finding{}, Counts: f.counts}
	for _, list := range f.list {
		r.Findings = append(r.Findings, list...)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(-cmp.Compare(a.Level.rank(), b.Level.rank()), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Message, b.Message))
	})
	return r
}

// tally counts objects by something they have in common, with the key of the first.
type tally[K comparable] struct {
	order []K
	by    map[K]*tallied
}

type tallied struct {
	objects int
	first   []byte
}

func (t *tally[K]) add(k K, key []byte) {
	if t.by == nil {
		t.by = map[K]*tallied{}
	}
	if t.by[k] == nil {
		t.by[k] = &tallied{first: slices.Clone(key)}
		t.order = append(t.order, k)
	}
	t.by[k].objects++
}

// each visits what was counted in the order it was met.
func (t *tally[K]) each(visit func(k K, objects int, first []byte)) {
	for _, k := range t.order {
		visit(k, t.by[k].objects, t.by[k].first)
	}
}

// things is a number of things for a person to read.
func things(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
