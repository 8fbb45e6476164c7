package renamenode

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "rename-node".
var Spec = transform.Spec{
	Name:  "rename-node",
	Usage: "rename nodes, with all references to them",
	Rest:  "OLD=NEW...",
	Examples: `etcdshift rename-node before.db after.db node-1=worker-1
etcdshift rename-node --dry-run --report report.json \
    before.db after.db a=b b=a`,
	Text: `Renames Nodes with their Leases and CSINodes, and all references by name: bound and mirror Pods, node
affinity and selectors by hostname, VolumeAttachments, EndpointSlices, owner references, node users in RBAC, and the
records of Calico and Cilium. UIDs stay. Other objects with an old name are listed as warnings, and changes on the
machines as manual steps.`,
	Codes: slices.Concat([]*finding.Code{
		codeNoNode, codeMentioned, codeAttachment, transform.CodeNameTaken, transform.CodeUnsupportedLayout,
	}, transform.ObjectCodes()),
	Settles: map[string]string{
		codeNoNode.Name:              "\"etcdshift get IN nodes\" lists the names",
		finding.Encrypted.Name:       "decrypt them with --encryption-config FILE",
		transform.CodeNameTaken.Name: "delete the other object first, with \"etcdshift delete\"",
	},
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		to, err := readPairs(a.Rest)
		return &rename{to: to}, err
	},
}

// readPairs parses the arguments OLD=NEW.
func readPairs(words []string) (map[string]string, error) {
	to, from := map[string]string{}, map[string]string{}
	for _, word := range words {
		old, name, both := strings.Cut(word, "=")
		if !both || old == "" || name == "" {
			return nil, transform.Usagef("%q is no pair of names OLD=NEW, such as node-1=worker-1", word)
		}
		for _, one := range []string{old, name} {
			if bad := validation.IsDNS1123Subdomain(one); len(bad) > 0 {
				return nil, transform.Usagef("%q cannot be the name of a node: %s", one, bad[0])
			}
		}
		switch {
		case old == name:
			return nil, transform.Usagef("%q is the old and the new name", old)
		case to[old] != "":
			return nil, transform.Usagef("%q gets two names, %q and %q", old, to[old], name)
		case from[name] != "":
			return nil, transform.Usagef("%q and %q get the same name %q", from[name], old, name)
		}
		to[old], from[name] = name, old
	}
	if len(to) == 0 {
		return nil, transform.Usagef("say which nodes to rename: OLD=NEW...")
	}
	return to, nil
}

// Codes of findings about node names.
var (
	codeNoNode     = finding.Lookup("no-such-node")
	codeMentioned  = finding.Lookup("old-node-name")
	codeAttachment = finding.Lookup("attachment-name")
)
