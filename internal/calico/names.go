package calico

import (
	"net"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/ipam"
)

// defaultTier is the tier of a policy that names none.
const defaultTier = "default"

// v3Name is the name of a record as a v3 object, with a finding where the stored name suggests
// another. It fails where no server accepts the name.
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
		name = ipam.BlockName(ipnet)
		if name != stored {
			notes = append(notes, codeBlockName.Because("the block of %s was stored as %s, its v3 name is %s", ipnet, stored, name))
		}
	case nameHandle:
		if id := text(spec, "handleID"); id != "" {
			name = strings.ToLower(id)
		}
		if name != stored {
			notes = append(notes, codeHandleName.Because("the handle was stored as %s, IPAM looks it up as %s", stored, name))
		}
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		return "", nil, codeInvalid.Because("metadata.name %q: %s", name, bad[0])
	}
	return name, notes, nil
}

// policyName strips one "default." from the stored name of a default-tier policy, as releases
// before v3.32 stored it. The prefix of another tier is part of the name.
func policyName(stored, tier string) string {
	if tier != "" && tier != defaultTier {
		return stored
	}
	return strings.TrimPrefix(stored, defaultTier+".")
}

// parseCIDR reads spec.cidr; host bits are masked off, as Calico does when it reads a block.
func parseCIDR(spec map[string]any) (*net.IPNet, error) {
	_, ipnet, err := net.ParseCIDR(text(spec, "cidr"))
	if err != nil {
		return nil, codeInvalid.Because("spec.cidr: %v", err)
	}
	return ipnet, nil
}

// cidrOfName is the CIDR of the block with that object name, "" where it is the name of none.
func cidrOfName(name string) string {
	last := strings.LastIndexByte(name, '-')
	if last < 0 {
		return ""
	}
	for _, between := range []string{".", ":"} {
		if p, err := netip.ParsePrefix(strings.ReplaceAll(name[:last], "-", between) + "/" + name[last+1:]); err == nil {
			return p.Masked().String()
		}
	}
	return ""
}

// text is the string at name, empty when it is missing or no string.
func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}
