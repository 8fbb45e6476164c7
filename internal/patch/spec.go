package patch

import (
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "patch".
var Spec = transform.Spec{
	Name:  "patch",
	Usage: "patch objects, as kubectl patch does",
	Rest:  "TYPE[/NAME] [NAME...]",
	Examples: `etcdshift patch before.db after.db deployment/web -n shop \
    -p '{"spec": {"replicas": 0}}'
etcdshift patch before.db after.db pv data-0 --type merge \
    --patch-file affinity.yaml
etcdshift patch before.db after.db widgets -A --type json \
    --where 'has(object.metadata.finalizers)' \
    -p '[{"op": "remove", "path": "/metadata/finalizers"}]'`,
	Text: `Changes the named or selected objects like kubectl patch. Immutable fields can be changed too: the node
affinity of a PersistentVolume, the clusterIP of a Service, the selector of a Deployment, and the status. The result
must be valid for the schema and rules of its CustomResourceDefinition, or for Kubernetes' own validation of its
built-in kind.

A patch is YAML or JSON. It is applied to the object at its stored version, as "etcdshift get -o yaml" prints it. A
server adds defaults when it reads the object. metadata.generation grows as after an update by a server. A patched
CustomResourceDefinition must still be valid for a server.`,
	Codes: append([]*finding.Code{codeFailed, codeIdentity, codeStrategic, codeNoAddress, codeNothing,
		transform.CodeAddress, transform.CodeUnknownFields, transform.CodeInvalidObject,
		transform.CodeWouldBePlaintext}, slices.Concat(objects.FreedCodes(), objects.ChoiceCodes())...),
	Settles: map[string]string{
		codeStrategic.Name:     "give --type merge",
		finding.Encrypted.Name: "decrypt them with --encryption-config FILE",
	},
	Flags: slices.Concat([]transform.Flag{
		{Name: "patch", Short: "p", Usage: "apply `PATCH`, in YAML or JSON"},
		{Name: "patch-file", Usage: "read the patch from `FILE`"},
		{Name: "type", Default: typeStrategic, Choices: []string{typeStrategic, typeMerge, typeJSON},
			Usage: "`strategic|merge|json`: set the type of the patch; strategic is not for custom resources"},
	}, objects.ChoiceFlags()),
	New: newFromArgs,
}

func newFromArgs(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	text := []byte(a.String("patch"))
	switch {
	case a.IsSet("patch") == a.IsSet("patch-file"):
		return nil, transform.Usagef("give the patch with --patch PATCH or with --patch-file FILE")
	case a.IsSet("patch-file"):
		var err error
		if text, err = a.ReadFile(ctx, "patch-file"); err != nil {
			return nil, err
		}
	}
	b, err := readBody(a.String("type"), text)
	if err != nil {
		return nil, err
	}
	choice, err := objects.Choose(a, a.Rest)
	if err != nil {
		return nil, err
	}
	return &patch{choice: choice, body: b}, nil
}

// Codes of findings about a patch.
var (
	codeFailed    = finding.Lookup("patch-failed")
	codeIdentity  = finding.Lookup("patch-identity")
	codeStrategic = finding.Lookup("strategic-custom-resource")
	codeNoAddress = finding.Lookup("cluster-ip-missing")
	codeNothing   = finding.Lookup("nothing-patched")
)
