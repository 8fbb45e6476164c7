package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/rehearse"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func rehearseCommand() *cli.Command {
	return &cli.Command{
		Name:      "rehearse",
		Usage:     "restore a snapshot into a local etcd and API server, and test it",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift rehearse before.db
etcdshift rehearse before.db --after after.db -o json > rehearsal.json
etcdshift rehearse --kube-apiserver ./kube-apiserver \
    --kube-controller-manager ./kube-controller-manager after.db
etcdshift rehearse --hold --kubeconfig kubeconfig after.db`,
		UsageText: `Restores SNAPSHOT like "etcdutl snapshot restore" with the flags that a migration prints, starts
an etcd on it, and compares every key and HashKV with the file. Then it starts an API server, lists every custom
resource at every served version, and tries updates and server-side applies of a sample, as dry runs. Each failure is
a finding, with the message of the server. Omitted checks are listed.

The default API server is Kubernetes' own for custom resources, built into this program. --kube-apiserver runs your
API server, and tests built-in kinds too; --kube-controller-manager lists the objects that the garbage collector
would delete first.

Everything runs in a temporary folder of your own, in processes that end with this one. It takes disk space of the
size of the snapshot for each member, and contacts no other machine: webhooks and aggregated APIs are not checked,
except the conversion of a GROUP given by --conversion-webhook or --conversion-exec.

With --policy, every object is also checked against ValidatingAdmissionPolicies, as by "etcdshift policy check".

With --after, both files are rehearsed; the exit status counts only failures of FILE that SNAPSHOT does not have.

Exit status: 0 nothing fails, 1 something fails, 2 usage, 5 could not rehearse, 130 interrupted.`,
		Flags: readFlags("have the API server decrypt values with",
			&cli.StringFlag{Name: "after", Usage: "also rehearse `FILE`, a changed copy of SNAPSHOT, and compare"},
			&cli.StringFlag{Name: "kube-apiserver", Usage: "run the API server `BINARY`"},
			&cli.StringFlag{Name: "kube-controller-manager",
				Usage: "run the garbage collector of `BINARY`; requires --kube-apiserver"},
			&cli.StringSliceFlag{Name: "policy", Usage: "check all objects against the " +
				"ValidatingAdmissionPolicies in `FILE`; may be repeated"},
			&cli.IntFlag{Name: "members", Value: 1, Usage: "restore `N` members of a cluster"},
			&cli.IntFlag{Name: "sample", Value: 1000, Usage: "try writes of `N` objects of each kind"},
			&cli.Int64Flag{Name: "bump-revision", Value: transform.DefaultBumpRevision,
				Usage: "raise the revision by `N` in the restore"},
			&cli.StringSliceFlag{Name: "conversion-webhook",
				Usage: "`GROUP=URL`: convert objects of GROUP with the webhook at URL; may be repeated"},
			&cli.StringSliceFlag{Name: "conversion-exec",
				Usage: "`GROUP=COMMAND`: convert objects of GROUP with COMMAND; may be repeated"},
			&cli.StringFlag{Name: "conversion-ca", Usage: "verify webhooks with the CA certificates in `FILE`"},
			&cli.BoolFlag{Name: "hold", Usage: "keep the servers running for kubectl until Ctrl-C; requires " +
				"--kubeconfig"},
			&cli.StringFlag{Name: "kubeconfig", Usage: "with --hold, write a kubeconfig to the new file `FILE`"},
			&cli.StringFlag{Name: "dir",
				Usage: "create the temporary folder in `DIR` (default: the folder of the system)"},
			outputFlag("text", "json", "junit")),
		Action: checking(runRehearse),
	}
}

// rehearsalDocument is the document of rehearse -o json.
type rehearsalDocument struct {
	documentHead
	rehearsal
	After       *rehearsalAfter       `json:"after,omitempty"`       // of --after
	Differences *rehearsalDifferences `json:"differences,omitempty"` // with --after
}

// rehearsal is the result for one file.
type rehearsal struct {
	Passed     bool                  `json:"passed"` // no error and no warning
	Versions   rehearse.Versions     `json:"versions"`
	Restored   rehearse.Restored     `json:"restored"`
	Steps      []rehearse.Step       `json:"steps"`
	Kinds      []rehearse.Kind       `json:"kinds"`
	NotChecked []rehearse.NotChecked `json:"notChecked"`
	report.Diagnosis
	done *rehearse.Report
}

// rehearsalAfter is the rehearsal of the file of --after.
type rehearsalAfter struct {
	Input inputInfo `json:"input"`
	rehearsal
}

// rehearsalDifferences holds findings broken and mended by a change, by code and key.
type rehearsalDifferences struct {
	Broken []report.Finding `json:"broken"`
	Mended []report.Finding `json:"mended"`
}

func runRehearse(c *cli.Context, args []string) error {
	cfg, err := rehearseConfig(c)
	if err != nil {
		return err
	}
	if after := c.String("after"); after != "" && after != "-" && !s3.Is(after) {
		if _, err := os.Stat(after); err != nil { // before the long first rehearsal
			return err
		}
	}
	removed, err := sandbox.Clear(cfg.Dir)
	warn(c, stream.Mapped(removed, func(path string) string { return "removed what a killed run left: " + path })...)
	if err != nil {
		return err
	}
	doc := &rehearsalDocument{}
	before := func(in inputInfo, r rehearsal) error {
		doc.documentHead, doc.rehearsal = document("Rehearsal", in), r
		return nil
	}
	last, told := args[0], func(in inputInfo, r rehearsal) error { return errors.Join(before(in, r), doc.print(c)) }
	if c.IsSet("after") {
		first := cfg
		first.Hold = nil
		if err := rehearseFile(c, args[0], first, before); err != nil {
			return err
		}
		last, told = c.String("after"), func(in inputInfo, r rehearsal) error {
			doc.compare(in, r)
			return doc.print(c)
		}
	}
	if err := rehearseFile(c, last, cfg, told); err != nil {
		return err
	}
	return doc.verdict()
}

// rehearseFile rehearses the file at path, and calls tell with the results before holding the
// servers.
func rehearseFile(c *cli.Context, path string, cfg rehearse.Config, tell func(in inputInfo, r rehearsal) error) error {
	phases := progress(c)
	defer phases.End()
	o, err := openSnapshot(c, path, encryptionConfig)
	if err != nil {
		return err
	}
	defer o.Close()
	cfg.Transformers = o.transformers
	cfg.Phase = func(name string) { phases.Phase(path + ": " + name) }
	cfg.Tell = func(r *rehearse.Report) error {
		phases.End()
		in, err := o.input(c.Context)
		if err != nil && !errors.Is(err, snapshot.ErrDigest) {
			return err
		}
		return tell(in, rehearsal{
			r.Passed(), r.Versions, r.Restored, r.Steps, r.Kinds, r.NotChecked, report.Diagnosed(&r.Found), r,
		})
	}
	return checkPrefixes(c, rehearse.Run(c.Context, o.Reader, cfg), o)
}

// compare adds the rehearsal of --after.
func (d *rehearsalDocument) compare(in inputInfo, after rehearsal) {
	changed := rehearse.Compare(d.done, after.done)
	d.After = &rehearsalAfter{in, after}
	d.Differences = &rehearsalDifferences{
		report.Diagnosed(&finding.Report{Findings: changed.Broken}).Findings,
		report.Diagnosed(&finding.Report{Findings: changed.Mended}).Findings,
	}
}

// verdict returns the error with the exit status: of the change, if one was rehearsed.
func (d *rehearsalDocument) verdict() error {
	switch {
	case d.After != nil && len(d.Differences.Broken) > 0:
		more := phrase.Count(len(d.Differences.Broken), "finding")
		return &failure{exitFound, fmt.Errorf("%s: %s that %s does not have", d.After.Input.Path, more, d.Input.Path),
			explainCode}
	case d.After == nil && !d.Passed:
		return &failure{exitFound, fmt.Errorf("%s: %s found", d.Input.Path,
			phrase.Count(d.Errors+d.Warnings, "failure")), explainCode}
	}
	return nil
}

// rehearseConfig reads the flags.
func rehearseConfig(c *cli.Context) (cfg rehearse.Config, err error) {
	cfg = rehearse.Config{
		Dir: c.String("dir"), Bump: c.Int64("bump-revision"), Members: c.Int("members"), Sample: c.Int("sample"),
		APIServer: c.String("kube-apiserver"), ControllerManager: c.String("kube-controller-manager"),
		Policies: policy.Choice{Files: c.StringSlice("policy")},
	}
	// before the long restore
	if _, err := cfg.Policies.Load(c.Context, policy.Validating); err != nil {
		return cfg, err
	}
	for flag, n := range map[string]int64{"bump-revision": cfg.Bump, "members": int64(cfg.Members),
		"sample": int64(cfg.Sample)} {
		if n < 1 {
			return cfg, usagef(commandPath(c), "--%s is %d; it takes a number from 1", flag, n)
		}
	}
	switch {
	case cfg.Members > mostMembers:
		return cfg, usagef(commandPath(c), "--members is %d; it takes at most %d", cfg.Members, mostMembers)
	case cfg.ControllerManager != "" && cfg.APIServer == "":
		return cfg, usagef(commandPath(c), "--kube-controller-manager takes --kube-apiserver")
	case c.Bool("hold") != c.IsSet("kubeconfig"):
		return cfg, usagef(commandPath(c), "--hold and --kubeconfig go together")
	}
	for _, binary := range []*string{&cfg.APIServer, &cfg.ControllerManager} {
		if *binary != "" {
			if *binary, err = exec.LookPath(*binary); err != nil {
				return cfg, err
			}
		}
	}
	if path := c.String(encryptionConfig); path != "" {
		if cfg.Encryption, err = filepath.Abs(path); err != nil {
			return cfg, err
		}
	}
	if c.Bool("hold") {
		cfg.Hold = func(ctx context.Context, api *rest.Config) error { return hold(ctx, c, api) }
	}
	cfg.Converters, err = conversionFlags(c)
	return cfg, err
}

// mostMembers limits the members: etcd advises at most seven.
const mostMembers = 9

// conversionFlags reads the flags of conversion.
func conversionFlags(c *cli.Context) (map[string]*conversion.Converter, error) {
	f := conversion.Flags{Webhooks: c.StringSlice("conversion-webhook"), Commands: c.StringSlice("conversion-exec")}
	var err error
	if path := c.String("conversion-ca"); path != "" {
		if f.CA, err = input.ReadFlag(c.Context, "conversion-ca", path); err != nil {
			return nil, err
		}
	}
	chosen, err := f.Converters()
	if err != nil {
		return nil, usagef(commandPath(c), "%w", err)
	}
	return chosen, nil
}
