package schema

import "slices"

// pruneMode selects what the pruning algorithm does with undeclared fields.
type pruneMode int

const (
	noPruning   pruneMode = iota // keeps them, and looks no further
	skipPruning                  // keeps them, but prunes below declared ones: x-kubernetes-preserve-unknown-fields
	fullPruning                  // drops them
)

// fits reports whether coercing obj at this version would leave everything except the root's
// metadata as it is. It follows pruning.Prune, objectmeta.Coerce and
// PruneNonNullableNullsWithoutDefaults in one pass; in doubt it returns false.
func (v *Version) fits(obj map[string]any) bool {
	mode := fullPruning
	if v.preserves() {
		mode = noPruning
	}
	s := v.shape()
	if s == nil {
		s = &shape{}
	}
	return s.fitsMap(obj, mode, true)
}

func (s *shape) fits(value any, mode pruneMode) bool {
	if s == nil && mode != fullPruning {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		if s == nil {
			return len(value) == 0
		}
		return s.fitsMap(value, mode, false)
	case []any:
		items, mode := s.item(), s.mode(mode)
		return !slices.ContainsFunc(value, func(element any) bool { return !items.fits(element, mode) })
	}
	return true
}

// fitsMap checks an object; root marks the resource itself.
func (s *shape) fitsMap(object map[string]any, mode pruneMode, root bool) bool {
	mode = s.mode(mode)
	for name, value := range object {
		child, declared := s.field(name)
		meta := isMetaField(name)
		switch {
		case s.embedded && meta && !fitsEmbedded(name, value):
			return false
		case !declared && !((s.embedded || root) && meta) && mode == fullPruning:
			return false
		case value == nil && mode != noPruning && child != nil && !child.nullable && !child.hasDefault:
			return false
		}
		below := fullPruning
		if mode == noPruning || !declared || (s.embedded || root) && meta {
			below = noPruning
		}
		if !child.fits(value, below) {
			return false
		}
	}
	return true
}

// mode returns how values of this node are pruned.
func (s *shape) mode(around pruneMode) pruneMode {
	if s != nil && around == fullPruning && s.preserve {
		return skipPruning
	}
	return around
}

// fitsEmbedded reports whether a field of an embedded resource stays as it is.
func fitsEmbedded(name string, value any) bool {
	if name == "metadata" {
		return metaFields.accept(value)
	}
	_, isString := value.(string)
	return isString
}
