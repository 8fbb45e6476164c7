// Package sections finds the section of a transform in the report of a run.
package sections

import "github.com/etcdshift/etcdshift/transform"

// Of returns the section of a type; an empty one where the report has none.
func Of[S any](r *transform.Report) *S {
	for _, s := range append(r.Sections[:len(r.Sections):len(r.Sections)], r.Appendix) {
		if section, ok := any(s).(*S); ok {
			return section
		}
	}
	return new(S)
}
