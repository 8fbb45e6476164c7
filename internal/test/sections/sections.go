// Package sections finds the section of a transform in a report.
package sections

import "github.com/etcdshift/etcdshift/transform"

// Of returns the section of a type, or an empty one.
func Of[S any](r *transform.Report) *S {
	for _, s := range append(r.Sections[:len(r.Sections):len(r.Sections)], r.Appendix) {
		if section, ok := any(s).(*S); ok {
			return section
		}
	}
	return new(S)
}
