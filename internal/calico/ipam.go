package calico

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/internal/ipam"
)

// The labels by which IPAM selects block affinities, since v3.31.
const (
	labelAffinityType = "projectcalico.org/affinity-type"
	labelIPVersion    = "projectcalico.org/ip-version"
)

// affinityType is the type of an affinity as IPAM reads it.
func affinityType(spec map[string]any) string { return cmp.Or(text(spec, "type"), "host") }

// affinityLabels are the labels by which IPAM selects an affinity of that spec.
func affinityLabels(spec map[string]any) map[string]string {
	version := "4"
	if strings.Contains(text(spec, "cidr"), ":") {
		version = "6"
	}
	return map[string]string{
		ipam.HostnameHashLabel: ipam.HostnameHash(text(spec, "node")),
		labelAffinityType:      affinityType(spec),
		labelIPVersion:         version,
	}
}

// parseDeleted reads the v1 string as IPAM does at run time. To the live migration "1" and "True"
// are false.
func parseDeleted(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		if v == "" {
			return false, nil
		}
		if b, err := strconv.ParseBool(v); err == nil {
			return b, nil
		}
	}
	return false, codeInvalid.Because("spec.deleted: %v is neither true nor false", v)
}

// convertBlock writes the CIDR as Calico prints it and fills in the lists and the boolean that the
// v3 CRD demands. All else stays, releasedAt of addresses that cool down and strictAffinity
// included.
func convertBlock(spec map[string]any) error {
	ipnet, err := parseCIDR(spec)
	if err != nil {
		return err
	}
	spec["cidr"] = ipnet.String()
	fill(spec, "attributes", []any{})
	fill(spec, "unallocated", []any{})
	fill(spec, "strictAffinity", false)
	return nil
}

// fill sets a missing field.
func fill(spec map[string]any, name string, value any) {
	if spec[name] == nil {
		spec[name] = value
	}
}
