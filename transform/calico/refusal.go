package calico

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// refusal is why a record cannot be migrated: a problem code and a reason a person can read.
type refusal struct {
	code   string
	reason string
}

func (r *refusal) Error() string { return r.reason }

// refuse makes the error of a record that cannot be migrated.
func refuse(code, format string, args ...any) error {
	return &refusal{code: code, reason: clip(fmt.Sprintf(format, args...), 4000)}
}

// clip cuts text that quotes what it is about after so many bytes: a value may be long.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// asRefusal says whether err is about the record, and not about reading the snapshot.
func asRefusal(err error) (*refusal, bool) {
	var r *refusal
	ok := errors.As(err, &r)
	return r, ok
}

// note is a warning about a record that is migrated all the same.
type note struct {
	code   string
	reason string
}

// refuseValue reports a value that cannot be read. Several stages look at some values; the first to find one unreadable says
// so, and it is one problem. It is for the few values that are looked at one by one: it goes through all problems.
func refuseValue(v *transform.View, key string, err error) {
	said := slices.ContainsFunc(v.Report().Problems, func(p finding.Finding) bool { return p.Key == key && aboutValue(p) })
	if !said {
		v.Refuse(key, codeOfValue(err), err.Error())
	}
}

// codeOfValue is the code of an error about a value as a whole.
func codeOfValue(err error) string {
	if errors.Is(err, encoding.ErrEncrypted) {
		return codeEncrypted
	}
	return codeUndecodable
}

func aboutValue(p finding.Finding) bool {
	return p.Level == finding.Error && (p.Code.Name == codeEncrypted || p.Code.Name == codeUndecodable)
}

// unreadable are the keys whose values were reported as ones that cannot be read.
func unreadable(v *transform.View) map[string]bool {
	out := map[string]bool{}
	for _, p := range v.Report().Problems {
		if aboutValue(p) {
			out[p.Key] = true
		}
	}
	return out
}
