package calico

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// record is a decoded v1 record.
type record struct {
	kind   *kind
	key    keys.Key
	obj    map[string]any
	spec   map[string]any
	format encoding.Format
	meta   metadata
	uid    uuid.UUID // as stored
}

// readRecord decodes a stored v1 record. All its errors are findings.
func readRecord(k *kind, key keys.Key, value []byte) (*record, error) {
	obj, format, err := encoding.DecodeObject(value)
	if err != nil {
		return nil, transform.Unreadable(err)
	}
	r := &record{kind: k, key: key, obj: obj, format: format}
	if obj["apiVersion"] != apiVersionV1 || obj["kind"] != k.V1Kind {
		return nil, finding.Undecodable.Because("is a %v %v, not a %s %s", obj["apiVersion"], obj["kind"],
			apiVersionV1, k.V1Kind)
	}
	if k.Namespaced != (key.Namespace != "") {
		return nil, finding.Undecodable.Because("the key does not fit the scope of %s", k.V1Kind)
	}
	if r.meta, err = readMetadata(obj); err != nil {
		return nil, err
	}
	if r.meta.outer.Name != key.Name || r.meta.outer.Namespace != key.Namespace {
		return nil, codeBadMetadata.Because("metadata names it %q in namespace %q, unlike the key", r.meta.outer.Name,
			r.meta.outer.Namespace)
	}
	if r.uid, err = parseUID(string(r.meta.outer.UID)); err != nil {
		return nil, codeBadUID.Because("metadata.%v", err)
	}
	r.spec, err = specOf(obj)
	return r, err
}

// specOf returns the object's spec. A missing spec becomes an empty one, required by the v3 CRDs.
func specOf(obj map[string]any) (map[string]any, error) {
	switch spec := obj["spec"].(type) {
	case map[string]any:
		return spec, nil
	case nil:
		empty := map[string]any{}
		obj["spec"] = empty
		return empty, nil
	default:
		return nil, codeInvalid.Because("spec: not an object")
	}
}

// decode decodes the value of a record.
func (id *identity) decode(value []byte) (*record, error) {
	return readRecord(id.kind, keys.Key{Resource: id.kind.v1(), Namespace: id.namespace(), Name: id.stored()}, value)
}

// identify reads the v3 name, the UID and the state of deletion of a v1 record.
func (s *scanned) identify() error {
	if uid, m, spec, sure := s.glance(); sure {
		return s.setIdentity(uid, m, spec)
	}
	r, err := readRecord(s.id.kind, s.key, s.value)
	if err != nil {
		return err
	}
	return s.setIdentity(r.uid, r.meta, r.spec)
}

func (s *scanned) setIdentity(uid uuid.UUID, m metadata, spec map[string]any) error {
	name, notes, err := v3Name(s.id.kind, s.key.Name, m, spec)
	if err != nil {
		return err
	}
	if name != s.key.Name {
		s.id.mutableOptional().name = name
	}
	at, _ := m.deletion()
	s.notes, s.id.uid, s.id.deleting = notes, uid, at != nil
	return nil
}

// namingFields are the spec fields read by v3Name.
var namingFields = encoding.FieldsOf[struct {
	Tier     string `json:"tier"`
	CIDR     string `json:"cidr"`
	HandleID string `json:"handleID"`
}]()

// glance reads the input of v3Name from a record without an annotation, such as almost all IPAM
// records, the majority. If sure is true, readRecord would return the same values, and the record
// is not being deleted.
func (s *scanned) glance() (uid uuid.UUID, m metadata, spec map[string]any, sure bool) {
	var g encoding.Glance
	k := s.id.kind
	if !g.GlanceJSON(s.value) || g.Odd || string(g.APIVersion) != apiVersionV1 || string(g.Kind) != k.V1Kind ||
		k.Namespaced != (s.key.Namespace != "") ||
		string(g.Name) != s.key.Name || string(g.Namespace) != s.key.Namespace ||
		slices.ContainsFunc(g.Managed, func(version []byte) bool { return string(version) == apiVersionV3 }) {
		return uid, m, nil, false
	}
	for _, a := range g.Annotations {
		if string(a.Name) == metadataAnnotation {
			if m.annotated = true; string(a.Value) != "{}" {
				return uid, m, nil, false
			}
		}
	}
	uid, err := parseUID(string(g.UID))
	if err != nil {
		return uid, m, nil, false
	}
	named, err := namingFields.Decode(g.Spec)
	if err != nil {
		return uid, m, nil, false
	}
	return uid, m, map[string]any{"tier": named.Tier, "cidr": named.CIDR, "handleID": named.HandleID}, true
}

// defaultTier is the tier of a policy without one.
const defaultTier = "default"

// v3Name returns the v3 name of a record, with a finding if the stored name suggests another one.
// v3Name fails if servers reject the name.
func v3Name(k *kind, stored string, m metadata, spec map[string]any) (string, []*finding.Finding, error) {
	name := stored
	if m.annotated && m.inner.Name != "" {
		name = m.inner.Name
	} else if m.annotated && k.Name == namePolicy {
		name = policyName(stored, text(spec, "tier"))
	}
	var notes []*finding.Finding
	switch k.Name {
	case nameBlock:
		ipnet, err := parseCIDR(spec)
		if err != nil {
			return "", nil, err
		}
		name = machines.BlockName(ipnet)
		if name != stored {
			notes = append(notes, codeBlockName.Because("the block of %s was stored as %s, its v3 name is %s",
				ipnet, stored, name))
		}
	case nameHandle:
		if id := text(spec, "handleID"); id != "" {
			name = strings.ToLower(id)
		}
		if name != stored {
			notes = append(notes, codeHandleName.Because("the handle was stored as %s, IPAM looks it up as %s", stored,
				name))
		}
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		return "", nil, codeInvalid.Because("metadata.name %q: %s", name, bad[0])
	}
	return name, notes, nil
}

// policyName strips one "default." from the stored name of a default-tier policy, the form of
// releases before v3.32. The prefix of another tier is part of the name.
func policyName(stored, tier string) string {
	if tier != "" && tier != defaultTier {
		return stored
	}
	return strings.TrimPrefix(stored, defaultTier+".")
}

// parseCIDR parses spec.cidr and masks host bits, like Calico when it reads a block.
func parseCIDR(spec map[string]any) (*net.IPNet, error) {
	_, ipnet, err := net.ParseCIDR(text(spec, "cidr"))
	if err != nil {
		return nil, codeInvalid.Because("spec.cidr: %v", err)
	}
	return ipnet, nil
}

// cidrOfName returns the CIDR of the block with that object name, "" for an invalid name.
func cidrOfName(name string) string {
	last := strings.LastIndexByte(name, '-')
	if last < 0 {
		return ""
	}
	for _, between := range []string{".", ":"} {
		if p, err := netip.ParsePrefix(strings.ReplaceAll(name[:last], "-", between) + "/" +
			name[last+1:]); err == nil {
			return p.Masked().String()
		}
	}
	return ""
}

// text returns the string at name, "" if missing or not a string.
func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}
