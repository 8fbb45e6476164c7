package finding

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/phrase"
)

// Level grades a finding.
type Level string

// The levels. An Error refuses a run unless its code is allowed; in a diagnosis, an Error is
// certain to cause harm. A Warning may cause harm, depending on facts outside the file. An Info
// causes none.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Info    Level = "info"
)

// Compare orders levels, the gravest first.
func (l Level) Compare(other Level) int {
	levels := []Level{Error, Warning, Info}
	return slices.Index(levels, l) - slices.Index(levels, other)
}

// Outcome is the decision about a finding: a constant below, or the text of an option of the run.
type Outcome string

// The outcomes, as reports spell them.
const (
	Refused Outcome = "refused"           // nothing is written
	Skipped Outcome = "skipped (allowed)" // the record stays as it is
	WentOn  Outcome = "went on (allowed)" // the run continues and changes everything
	Dropped Outcome = "dropped (allowed)" // the record is written without a part
	Noted   Outcome = "noted"             // no decision is needed
)

// Code is one kind of finding.
type Code struct {
	Name    string  // stable, such as "name-collision"
	Level   Level   // the gravest of its findings
	Warns   string  // when a finding of an Error is only a warning: "where ..."; "" for never
	Title   string  // in a few words
	Meaning string  // one to three sentences
	Remedy  string  // what to do
	Allow   string  // effect of --allow; "" if --allow does not take the code
	Allowed Outcome // outcome of a finding that --allow takes; "" if --allow does not take the code
}

// MarshalText returns the name.
func (c *Code) MarshalText() ([]byte, error) { return []byte(c.Name), nil }

// UnmarshalText sets the name, for readers of reports; the texts of the code stay empty.
func (c *Code) UnmarshalText(text []byte) error {
	c.Name = string(text)
	return nil
}

// maxReason is the length limit of a reason in bytes. A reason may quote a long value.
const maxReason = 4000

// Because returns a finding of the code.
func (c *Code) Because(format string, args ...any) *Finding {
	return &Finding{Code: c, Level: c.Level, Reason: Clip(fmt.Sprintf(format, args...), maxReason)}
}

// Clip cuts text after most bytes.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Finding is one occurrence of a code. Its JSON is the JSON of problems in the report of a run.
type Finding struct {
	Key     string  `json:"key"` // in etcd; "" for a finding about the file
	Code    *Code   `json:"code"`
	Level   Level   `json:"level"`
	Reason  string  `json:"reason"`
	Outcome Outcome `json:"decision"` // "" until it is reported
	Objects int     `json:"-"`        // number of objects, if several; Key is the first
}

// Error returns the reason.
func (f *Finding) Error() string { return f.Reason }

// Decided sets the outcome, regardless of --allow. All outcomes but Refused make the finding a
// warning.
func (f *Finding) Decided(how Outcome) *Finding {
	if f.Outcome = how; how != Refused {
		f.Level = Warning
	}
	return f
}

// At sets the key.
func (f *Finding) At(key string) *Finding {
	f.Key = key
	return f
}

// About sets the number of objects.
func (f *Finding) About(objects int) *Finding {
	f.Objects = objects
	return f
}

// Of returns the finding that err is or wraps, or nil.
func Of(err error) *Finding {
	var f *Finding
	errors.As(err, &f)
	return f
}

// Names returns the names of codes.
func Names(codes ...*Code) (names []string) {
	for _, c := range codes {
		names = append(names, c.Name)
	}
	return names
}

// Named returns the code with the given name, or nil.
func Named(codes []*Code, name string) *Code {
	for _, c := range codes {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Allowable returns the names of the codes that --allow takes, sorted.
func Allowable(codes []*Code) (names []string) {
	for _, c := range codes {
		if c.Allowed != "" {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// List joins at most 20 of the words.
func List(all []string) string {
	const most = 20
	return phrase.List(all, most)
}

// The codes with the same meaning in several packages.
var (
	// Undecodable is for a value that is not an object, or not the object that its key names.
	Undecodable = Lookup("undecodable")
	// Encrypted is for a value that no configured key decrypts.
	Encrypted = Lookup("encrypted")
	// UnknownKey is for a key that takes no part in a run.
	UnknownKey = Lookup("unknown-key").As(Warning, "")
)
