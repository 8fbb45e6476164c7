package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// policyCommand is the group for admission policies.
func policyCommand(specs []transform.Spec) *cli.Command {
	return &cli.Command{
		Name:  "policy",
		Usage: "evaluate admission policies on every stored object",
		Description: "etcdshift policy check before.db -f policies.yaml\netcdshift policy apply before.db after.db " +
			"-f policies.yaml",
		Subcommands: append([]*cli.Command{policyCheckCommand()}, specCommands(specs, transform.GroupPolicy)...),
	}
}

func policyCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "list objects that ValidatingAdmissionPolicies would refuse",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift policy check before.db -f policies.yaml
etcdshift policy check --from-snapshot before.db
etcdshift policy check before.db -f replicas.yaml -f params.yaml -o junit`,
		UsageText: `Evaluates ValidatingAdmissionPolicies on every stored object that they match, with the code of
k8s.io/apiserver, and lists the objects that an API server would refuse at the next write: bindings with the action
Deny are errors, Warn warnings, Audit infos. FILE contains policies and bindings of admissionregistration.k8s.io/v1,
v1beta1 or v1alpha1 as YAML or JSON, and optionally params; other params and Namespaces come from the snapshot.

The request is an update without changes by the user of --as. Rules for CREATE alone match nothing; this is a
finding. So are expressions that only a server can evaluate: calls of the authorizer, and conversions by a webhook.

Exit status: 0 no finding of the level of --fail-on or worse, 1 findings, 2 usage, 5 could not check, 130
interrupted.`,
		Flags: readFlags("decrypt values with", append(policyFlags(),
			oneOf(&cli.StringFlag{Name: "fail-on", Value: "error",
				Usage: "exit with status 1 for findings of `LEVEL` or worse: error or warning"},
				"error", "warning"),
			outputFlag("text", "json", "sarif (2.1.0)", "junit"))...),
		Action: checking(runPolicyCheck),
	}
}

// policyFlags select policies and the user of the request.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"},
			Usage: "read policies, bindings and params from `FILE`; may be repeated"},
		&cli.BoolFlag{Name: "from-snapshot", Usage: "also evaluate the policies in the snapshot"},
		&cli.StringSliceFlag{Name: "policy", Usage: "evaluate only the policy `NAME`; may be repeated (default: all)"},
		&cli.StringFlag{Name: "as", Value: policy.DefaultUser, Usage: "evaluate requests of `USER`"},
		&cli.StringSliceFlag{Name: "as-group", Usage: "evaluate requests of a member of `GROUP`; may be repeated"},
	}
}

// policyChoice reads the flags.
func policyChoice(c *cli.Context) (policy.Choice, policy.Options, error) {
	choice := policy.Choice{Files: c.StringSlice("filename"), Stored: c.Bool("from-snapshot"),
		Policies: c.StringSlice("policy")}
	if len(choice.Files) == 0 && !choice.Stored {
		return choice, policy.Options{}, usagef(commandPath(c),
			"no policy is given: -f FILE or --from-snapshot names some")
	}
	return choice, policy.Options{User: c.String("as"), Groups: c.StringSlice("as-group")}, nil
}

// policyCheck is the document of policy check -o json.
type policyCheck struct {
	documentHead
	Objects  int              `json:"objects"`  // matched by the rules of the policies
	Policies []*policy.Policy `json:"policies"` // by name
	report.Diagnosis
	found *finding.Report
}

func runPolicyCheck(c *cli.Context, args []string) error {
	choice, options, err := policyChoice(c)
	if err != nil {
		return err
	}
	doc, err := checkPolicies(c, args[0], choice, options)
	if err != nil {
		return err
	}
	e := examined{"policy check", doc.Input, policy.Codes(), doc.found, func(*finding.Code) string { return "" }}
	if err := e.print(c, doc, doc.printPolicies); err != nil {
		return err
	}
	if doc.found.Count(finding.Error) > 0 && doc.found.Counts[policy.CodeCost] > 0 {
		return &failure{exitCannotCheck, fmt.Errorf("%s: not all objects were checked", args[0]),
			"\"etcdshift explain policy-cost\" says what to do"}
	}
	return e.verdict(c, args[0], explainCode)
}

// checkPolicies evaluates the selected policies on the file at path.
func checkPolicies(c *cli.Context, path string, choice policy.Choice, options policy.Options) (*policyCheck, error) {
	reading := progress(c).Phase("evaluating policies on " + path)
	defer reading.End()
	set, err := choice.Load(c.Context, policy.Validating)
	if err != nil {
		return nil, err
	}
	o, err := openSnapshot(c, path, encryptionConfig)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	doc := &policyCheck{found: &finding.Report{Counts: map[*finding.Code]int{}}}
	err = o.Snapshot().Guard(func() error {
		layouts, err := o.Layouts(c.Context)
		if err != nil {
			return err
		}
		if _, err := serve.Storage(layouts); errors.Is(err, serve.ErrKCP) || errors.Is(err, serve.ErrStorages) {
			return errors.New("policies are evaluated on one cluster at a time: name its storage with --prefix; " +
				"kcp is not one")
		}
		if err := choice.Complete(c.Context, set, o.Reader); err != nil {
			return err
		}
		e, err := policy.New(c.Context, set, o.Reader, options)
		if err == nil {
			doc.Objects, err = policy.Check(c.Context, e, o.Reader, doc.found)
			doc.Policies = e.Of(policy.Validating)
		}
		return err
	})
	if err = checkPrefixes(c, err, o); err != nil {
		return nil, err
	}
	in, err := o.input(c.Context)
	doc.documentHead, doc.Diagnosis = document("PolicyCheck", in), report.Diagnosed(doc.found)
	return doc, err
}

// printPolicies prints the policies, after their findings.
func (d *policyCheck) printPolicies(p *render.Page) {
	p.Table([]any{"POLICY", "BINDINGS", "OBJECTS", "FAILED"}, stream.Mapped(d.Policies, func(one *policy.Policy) []any {
		return []any{one.Name, len(one.Bindings), one.Matched, one.Failed}
	})...)
	p.Printf("\n")
}
