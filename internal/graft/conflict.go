package graft

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// The values of --on-conflict.
const (
	keep = "keep"
	take = "take"
)

// decisions are the values of --on-conflict.
type decisions struct {
	all    string // keep or take; "" to refuse
	single []*decision
}

// decision is the decision about one object.
type decision struct {
	flag            string // as given: "take:deploy/shop/web"
	word            objects.Word
	namespace, name string

	types []*inspect.Type
	met   bool // the archive has the object
}

// does returns keep or take.
func (d *decision) does() string { return d.flag[:len(keep)] }

// parseDecisions parses the values of --on-conflict: keep, take, keep:TYPE/[NAMESPACE/]NAME or
// take:TYPE/[NAMESPACE/]NAME.
func parseDecisions(flags []string) (d decisions, err error) {
	for _, flag := range flags {
		does, object, single := strings.Cut(flag, ":")
		words, err := objects.ParseWords([]string{object})
		one := &decision{flag: flag}
		if single && err == nil && words[0].Names != nil {
			one.word, one.name = words[0], words[0].Names[0]
			if namespace, name, has := strings.Cut(one.name, "/"); has {
				one.namespace, one.name = namespace, name
			}
		}
		switch {
		case does != keep && does != take, single && (one.name == "" || strings.Contains(one.name, "/")):
			return d, transform.Usagef("--on-conflict is %q; it takes keep, take, keep:TYPE/[NAMESPACE/]NAME or "+
				"take:TYPE/[NAMESPACE/]NAME, such as take:deploy/shop/web", flag)
		case single:
			d.single = append(d.single, one)
		case d.all != "" && d.all != does:
			return d, transform.Usagef("--on-conflict is both keep and take; name the objects of one of them, " +
				"such as take:deploy/shop/web")
		default:
			d.all = does
		}
	}
	return d, nil
}

// resolveDecisions finds the types of the decisions, in the input or else in the archive.
func (r *run) resolveDecisions() error {
	for _, one := range r.OnConflict.single {
		var err error
		for _, from := range []*inspect.Reader{r.view.Reader(), r.Archive.Reader} {
			types, typesErr := from.Types(r.ctx)
			if typesErr != nil {
				return typesErr
			}
			if one.types, err = types.Resolve(one.word.Type); !errors.Is(err, inspect.ErrUnknownType) {
				break
			}
		}
		if err != nil {
			return transform.Usagef("--on-conflict %s: %v", one.flag, err)
		}
		for _, t := range one.types {
			if t.Namespaced != (one.namespace != "") {
				form := "TYPE/NAMESPACE/NAME"
				if !t.Namespaced {
					form = "TYPE/NAME"
				}
				return transform.Usagef("--on-conflict %s: for %s give %s", one.flag, t.Name(), form)
			}
		}
	}
	return nil
}

// decide returns the decision about an object, "" for none, and the value of the flag.
func (d *decisions) decide(key keys.Key) (does, flag string, err error) {
	does, flag = d.all, d.all
	var by *decision
	for _, one := range d.single {
		if one.namespace != key.Namespace || one.name != key.Name ||
			!slices.ContainsFunc(one.types, func(t *inspect.Type) bool { return t.Resource == key.Resource }) {
			continue
		}
		if one.met = true; by != nil && by.does() != one.does() {
			return "", "", transform.Usagef("--on-conflict has both %s and %s for one object", by.flag, one.flag)
		}
		by = one
		does, flag = one.does(), one.flag
	}
	return does, flag, nil
}

// reportUnmet reports the decisions about objects that the archive does not have: a misspelled name
// must not lose an object.
func (r *run) reportUnmet() {
	for _, one := range r.OnConflict.single {
		if !one.met {
			r.view.Raise("", codeNotFound.Because("--on-conflict %s: the archive has no such object", one.flag))
		}
	}
}

// meet decides about a key that the input has: takes is true for the record of the archive.
func (r *run) meet(it *item, e *inspect.Entry, here *transform.Entry) (takes bool, err error) {
	count := r.section.of(it.key)
	does, flag, err := r.OnConflict.decide(it.key)
	known := e.Undecryptable == nil && here.Undecryptable == nil
	switch {
	case err != nil:
		return false, err
	case known && bytes.Equal(e.Value, here.Value), bytes.Equal(e.Key, here.Key) && bytes.Equal(e.Stored, here.Stored):
		count.Same++
		return false, nil
	case keys.IsRecord(it.key.Resource): // the API servers of B keep their own
		count.Kept++
		return false, nil
	}
	found := codeKeyExists.Because("%s", differs(e, here, known))
	switch does {
	case keep:
		found = found.Decided(finding.Outcome("B's record stays (--on-conflict " + flag + ")"))
	case take:
		found = found.Decided(finding.Outcome("the archive's record takes its place (--on-conflict " + flag + ")"))
	}
	r.view.Raise(string(it.at), found)
	if does != take {
		count.Kept++
	}
	return does == take, nil
}

// differs describes the conflict of two values.
func differs(e *inspect.Entry, here *transform.Entry, known bool) string {
	if !known {
		return "B has the key, perhaps with the same value: one of the two values cannot be decrypted"
	}
	mine, err := e.Meta()
	theirs, err2 := here.Meta()
	if err == nil && err2 == nil && mine.UID != theirs.UID {
		return fmt.Sprintf("B has another object of this name, with UID %s", theirs.UID)
	}
	return "B has the object with another value"
}

var codeNotFound = finding.Lookup("not-found")
