package policy

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "policy apply".
var Spec = transform.Spec{
	Group: transform.GroupPolicy,
	Name:  "apply",
	Usage: "change objects as MutatingAdmissionPolicies would",
	Examples: `etcdshift policy apply before.db after.db -f policies.yaml --dry-run
etcdshift policy apply before.db after.db -f policies.yaml --diff
etcdshift policy apply before.db after.db -f policies.yaml \
    --policy sidecar --strict`,
	Text: `Evaluates MutatingAdmissionPolicies on every stored object that they match, with the code of
k8s.io/apiserver, and writes the changed objects: labels, sidecars, also fields that are immutable in updates. FILE
contains policies and bindings of admissionregistration.k8s.io/v1, v1beta1 or v1alpha1 as YAML or JSON, and
optionally params; other params and Namespaces come from the snapshot.

The request is an update without changes by the user of --as. Rules for CREATE alone match nothing; this is a
finding. So are expressions that only a server can evaluate: calls of the authorizer, and conversions between
versions of built-in kinds or by a webhook. A failed expression refuses the run if failurePolicy is Fail. Objects
that a second evaluation would change again are refused (not-idempotent).`,
	Flags: []transform.Flag{
		{Name: "filename", Short: "f", Default: []string{},
			Usage: "read policies, bindings and params from `FILE`; may be repeated"},
		{Name: "from-snapshot", Default: false, Usage: "also evaluate the policies in the snapshot"},
		{Name: "policy", Default: []string{}, Usage: "evaluate only the policy `NAME`; may be repeated (default: all)"},
		{Name: "strict", Default: false, Usage: "refuse the run if a policy matches no object"},
		{Name: "as", Default: DefaultUser, Usage: "evaluate requests of `USER`"},
		{Name: "as-group", Default: []string{}, Usage: "evaluate requests of a member of `GROUP`; may be repeated"},
	},
	Codes: []*finding.Code{
		CodeFailed, CodeIgnored, CodeNotIdempotent, CodeInvalid, CodeNotEvaluated, CodeCost, codeUnmatched,
		transform.CodeUnsupportedLayout, transform.CodeUnknownFields, transform.CodeInvalidObject,
		transform.CodeAddress, transform.CodeWouldBePlaintext,
		finding.Undecodable, finding.Encrypted,
	},
	Settles: map[string]string{
		CodeFailed.Name:        "mend the policy, or give it a matchCondition that leaves such objects out",
		CodeNotIdempotent.Name: "give the policy a matchCondition that is false once the change is there",
		CodeInvalid.Name:       "mend the policy, or leave it out",
		codeUnmatched.Name:     "mend the policy, or leave it out",
	},
	Sections: []transform.Section{&Policies{}},
	New: func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
		choice := Choice{Files: a.StringSlice("filename"), Stored: a.Bool("from-snapshot"),
			Policies: a.StringSlice("policy")}
		if len(choice.Files) == 0 && !choice.Stored {
			return nil, transform.Usagef("no policy is given: -f FILE or --from-snapshot names some")
		}
		set, err := choice.Load(ctx, Mutating)
		if err != nil {
			return nil, err
		}
		return &apply{choice, set, Options{User: a.String("as"), Groups: a.StringSlice("as-group")}, a.Bool("strict")},
			nil
	},
}

// codeUnmatched is CodeUnmatched as an error, for --strict.
var codeUnmatched = finding.Lookup("policy-unmatched")
