package schema

import (
	"bytes"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Settled reports, in one pass over the bytes of a JSON value that decodes nothing, that the object
// is the one its key names, that Rewrite and RelabelManagedFields would leave it as it is, and that
// its managedFields name no other version. False means that it has to be decoded to be sure: the
// answer is never wrong, and "no" only for few objects that are settled, such as those with
// embedded resources, with nulls, or with unusual escapes.
func (c *CRD) Settled(value []byte, namespace, name string) bool {
	storage := c.versions[c.StorageVersion()]
	if storage == nil || (c.v1.Spec.Scope == apiextensionsv1.NamespaceScoped) != (namespace != "") {
		return false
	}
	root := storage.settled()
	if root == nil {
		return false
	}
	return root.settles(value, namespace, name)
}

// settles passes a whole value.
func (r *settledRoot) settles(value []byte, namespace, name string) bool {
	s := settler{canonical: canonical{text: value}, root: r, namespace: namespace, name: name}
	return s.object(r.shape, r.mode, true) && string(s.text[s.at:]) == "\n"
}

// settledRoot is what a settled object at a version begins with.
type settledRoot struct {
	apiVersion, kind string
	shape            *shape
	mode             pruneMode
}

// compileSettled returns nil where no object can be told to be settled from its bytes.
func (v *Version) compileSettled() *settledRoot {
	if _, err := v.structural(); err != nil {
		return nil
	}
	r := &settledRoot{apiVersion: v.gvk().GroupVersion().String(), kind: v.crd.GroupKind().Kind, shape: v.shape(), mode: fullPruning}
	if v.preserves() {
		r.mode = noPruning
	}
	return r
}

// settler is one pass of Settled.
type settler struct {
	canonical
	root            *settledRoot
	anyManager      bool // managedFields may name any version
	namespace, name string
}

// object passes an object of shape s, which may be nil; root marks the resource itself. It follows
// shape.fitsMap and defaulter.fill.
func (s *settler) object(of *shape, mode pruneMode, root bool) bool {
	if of == nil {
		of = &shape{}
	}
	mode = of.mode(mode)
	defaults, identity := of.defaults, 0
	ok := s.members(func(name []byte) bool {
		if len(defaults) > 0 {
			if order := bytes.Compare([]byte(defaults[0]), name); order < 0 {
				return false // a default is missing
			} else if order == 0 {
				defaults = defaults[1:]
			}
		}
		child, declared := of.properties[string(name)]
		if !declared {
			child, declared = of.additional, of.open
		}
		switch {
		case bytes.IndexByte(name, '\\') >= 0:
			return false
		case (root || of.embedded) && isMetaField(string(name)):
			identity++
			return !child.hasDefaults() && !child.hasEmbedded() && s.metaMember(name, root)
		case declared && mode != noPruning:
			return s.value(child, fullPruning)
		case !declared && mode == fullPruning:
			return false
		}
		return s.value(child, noPruning)
	})
	return ok && len(defaults) == 0 && (!root || identity == 3)
}

// value passes any value, as shape.fits does.
func (s *settler) value(of *shape, mode pruneMode) bool {
	if of == nil && mode != fullPruning {
		return s.any()
	}
	switch s.peek() {
	case '{':
		return s.object(of, mode, false)
	case '[':
		items, mode := of.item(), of.mode(mode)
		return s.list(func() bool { return s.value(items, mode) })
	case 'n':
		return (of == nil || of.nullable) && s.word("null")
	}
	return s.any()
}

// metaMember passes apiVersion, kind or metadata of the resource, or of one embedded in it.
func (s *settler) metaMember(name []byte, root bool) bool {
	switch {
	case string(name) == "metadata":
		return s.metadata(root)
	case !root:
		return s.anyString()
	case string(name) == "kind":
		return s.is(s.root.kind)
	}
	return s.is(s.root.apiVersion)
}

// is passes the string want.
func (s *settler) is(want string) bool {
	got, ok := s.str()
	return ok && string(got) == want
}

// metadata passes metadata, as metaFields does. That of the resource must fit its key, and have
// nothing that a server clears.
func (s *settler) metadata(root bool) bool {
	required := 0
	ok := s.members(func(name []byte) bool {
		switch string(name) {
		case "name", "namespace", "generation":
			required++
		case "selfLink", "resourceVersion":
			return !root && s.filled()
		}
		switch {
		case root && string(name) == "name":
			return s.is(s.name)
		case root && string(name) == "namespace":
			return s.namespace != "" && s.is(s.namespace)
		}
		return s.metaField(name, root)
	})
	return ok && (!root || required == 3 || required == 2 && s.namespace == "")
}

func (s *settler) metaField(name []byte, root bool) bool {
	switch string(name) {
	case "name", "namespace", "generateName", "uid":
		return s.filled()
	case "generation":
		n, ok := s.integer()
		return ok && string(n) != "0"
	case "deletionGracePeriodSeconds":
		_, ok := s.integer()
		return ok
	case "creationTimestamp", "deletionTimestamp":
		return s.time()
	case "labels", "annotations":
		return s.peekPast() != '}' && s.members(func([]byte) bool { return s.anyString() })
	case "finalizers":
		return s.peekPast() != ']' && s.list(s.anyString)
	case "ownerReferences":
		return s.peekPast() != ']' && s.list(s.owner)
	case "managedFields":
		return s.peekPast() != ']' && s.list(func() bool { return s.entry(root) })
	}
	return false
}

// owner passes an owner reference, as isCanonicalOwner does.
func (s *settler) owner() bool {
	required := 0
	ok := s.members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion", "kind", "name", "uid":
			required++
			return s.anyString()
		case "controller", "blockOwnerDeletion":
			return s.word("true") || s.word("false")
		}
		return false
	})
	return ok && required == 4
}

// entry passes an entry of managedFields, as entryFields does: of the resource itself, one at the
// storage version.
func (s *settler) entry(root bool) bool {
	versioned := !root
	ok := s.members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion":
			versioned = true
			if root && !s.anyManager {
				return s.is(s.root.apiVersion)
			}
			return s.filled()
		case "manager", "operation", "fieldsType", "subresource":
			return s.filled()
		case "time":
			return s.time()
		case "fieldsV1":
			return s.fields(nil)
		}
		return false
	})
	return ok && versioned
}

// fields passes an object of nothing but objects.
func (s *settler) fields([]byte) bool { return s.peek() == '{' && s.members(s.fields) }

// hasEmbedded says whether the shape, or one below it, is of an embedded resource.
func (s *shape) hasEmbedded() bool {
	if s == nil {
		return false
	}
	if s.embedded || s.items.hasEmbedded() || s.additional.hasEmbedded() {
		return true
	}
	for _, below := range s.properties {
		if below.hasEmbedded() {
			return true
		}
	}
	return false
}
