package calico

import (
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// clip cuts text that quotes what it is about after so many bytes: a value may be long.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// refuseValue reports a value that cannot be read. Several phases look at some values; the first to find one unreadable says
// so, and it is one problem. It is for the few values that are looked at one by one: it goes through all problems.
func refuseValue(v *transform.View, key string, err error) {
	said := slices.ContainsFunc(v.Report().Problems, func(p finding.Finding) bool { return p.Key == key && aboutValue(p) })
	if !said {
		v.Raise(key, transform.Unreadable(err))
	}
}

func aboutValue(p finding.Finding) bool {
	return p.Level == finding.Error && (p.Code == finding.Encrypted || p.Code == finding.Undecodable)
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
