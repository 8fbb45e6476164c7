package schema

// pruneMode is what the pruning algorithm does with fields that a schema does
// not declare.
type pruneMode int

const (
	noPruning   pruneMode = iota // leaves them, and looks no further
	skipPruning                  // leaves them, but prunes below declared ones: x-kubernetes-preserve-unknown-fields
	fullPruning                  // drops them
)

// fits says that coercing obj at this version would leave everything but the
// root's metadata as it is, so that the work (and the copy that tells what was
// dropped) can be spared. It follows the algorithms of pruning.Prune,
// defaulting.PruneNonNullableNullsWithoutDefaults and objectmeta.Coerce in one
// go; in doubt it says no.
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
		var items *shape
		if s != nil {
			items, mode = s.items, s.mode(mode)
		}
		for _, element := range value {
			if !items.fits(element, mode) {
				return false
			}
		}
	}
	return true
}

// fitsMap takes an object; root is the resource itself.
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

// mode is how the values of this node are pruned.
func (s *shape) mode(around pruneMode) pruneMode {
	if around == fullPruning && s.preserve {
		return skipPruning
	}
	return around
}

// fitsEmbedded says that an embedded resource's field stays as it is.
func fitsEmbedded(name string, value any) bool {
	if name == "metadata" {
		return isCanonicalMeta(value)
	}
	_, isString := value.(string)
	return isString
}
