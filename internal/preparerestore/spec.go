package preparerestore

import (
	"context"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	stepsCategory   = "Which steps (default: all but service-account-tokens and those of --isolate)"
	isolateCategory = "A copy beside production"
)

// Spec is the command "prepare-restore".
var Spec = transform.Spec{
	Name:  "prepare-restore",
	Usage: "prepare a snapshot for other machines, or for a copy beside production",
	Examples: `etcdshift prepare-restore before.db after.db
etcdshift prepare-restore --keep-node n1 --keep-node n2 \
    before.db after.db
etcdshift prepare-restore --isolate --report report.json \
    before.db copy.db
etcdshift prepare-restore --undo report.json \
    copy.db back.db`,
	Text: `Takes out what ties a snapshot to the machines that it was taken on: what "doctor --for new-machines" finds. Nodes that do not come
back, and with them their Leases, CSINodes, VolumeAttachments and Pods, so that controllers make new ones; leases of API servers and
leaders; requests for certificates, Events and bootstrap tokens. Webhooks in the cluster become failurePolicy Ignore, and APIServices
that do not answer are deleted: --undo puts both back, from the "saved" of the report. Each item is a step with a name for --only
and --skip: ` + strings.Join(stepNames(), ", ") + `.

With --isolate the restored cluster acts on nothing outside: workloads have no Pods, Jobs and CronJobs are suspended, Services have
no load balancers, volumes are retained, and controllers such as Argo CD, Flux or Cluster API are paused by their own switches.
docs/guides/prepare-restore.md lists what is changed and how it is undone. DNS and kube-proxy in kube-system keep running, and what
--keep-running names.

What no step can mend, such as data on the disks of the old machines, is listed as a step by hand.`,
	Codes:    codes(),
	Settles:  map[string]string{codeKeepNode.Name: "spell --keep-node as \"etcdshift get IN nodes\" prints the Node"},
	Sections: []transform.Section{&Prepared{}},
	Flags:    flags(),
	New:      newFromArgs,
}

func flags() []transform.Flag {
	return []transform.Flag{
		{Name: "keep-node", Default: []string{}, Usage: "the Node `NAME` comes back, with all that is on it; may be repeated"},
		{Name: "only", Category: stepsCategory, Default: []string{}, Choices: stepNames(), Usage: "take this `STEP` only; may be repeated"},
		{Name: "skip", Category: stepsCategory, Default: []string{}, Choices: stepNames(), Usage: "do not take this `STEP`; may be repeated"},
		{Name: string(newKey), Category: stepsCategory, Default: false,
			Usage: "the API servers sign with a new key: empty the Secrets with tokens of ServiceAccounts, which are filled anew"},
		{Name: string(isolated), Category: isolateCategory, Default: false, Usage: "the restored cluster must not act on the world"},
		{Name: "keep-running", Category: isolateCategory, Default: []string{},
			Usage: "this workload keeps its Pods: `NAMESPACE/NAME`, or NAMESPACE for all in it; may be repeated"},
		{Name: "undo", Category: isolateCategory, Usage: "put back what a run changed whose report is `REPORT`, and nothing else"},
	}
}

func newFromArgs(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	if a.IsSet("undo") {
		for _, f := range flags() {
			if f.Name != "undo" && a.IsSet(f.Name) {
				return nil, transform.Usagef("--undo puts back all of a report; it does not take --%s", f.Name)
			}
		}
		return readUndo(ctx, a)
	}
	p := &prepare{keep: map[string]bool{}, running: a.StringSlice("keep-running"), isolated: a.Bool(string(isolated))}
	p.all = !a.IsSet("only") && !a.IsSet("skip")
	if len(p.running) > 0 && !p.isolated {
		return nil, transform.Usagef("--keep-running takes --isolate")
	}
	if p.isolated && !a.IsSet("report") && a.String("output") != "json" && !a.Bool("dry-run") {
		return nil, transform.Usagef("--isolate takes --report FILE, from which --undo puts everything back")
	}
	for _, name := range a.StringSlice("keep-node") {
		if name == "" {
			return nil, transform.Usagef("--keep-node takes the name of a Node")
		}
		p.keep[name] = true
	}
	var err error
	p.steps, err = chosen(a)
	return p, err
}

// codes are those of problems, and those of the machines, which are named in steps by hand.
func codes() []*finding.Code {
	tied := slices.DeleteFunc(machines.Codes(), func(c *finding.Code) bool { return c == machines.CodeOldNodes || c == machines.CodeNotInFile })
	return slices.Concat([]*finding.Code{codeKeepNode, codeBarePod, transform.CodeFinalizers, codeChangedSince, codeOtherCluster,
		codeNothingSaved, transform.CodeUnsupportedLayout}, objects.FreedCodes(), transform.ObjectCodes(), tied)
}

var (
	codeKeepNode     = finding.Lookup("keep-node-unknown")
	codeBarePod      = finding.Lookup("bare-pod")
	codeOtherCluster = finding.Lookup("other-cluster")
	codeNothingSaved = finding.Lookup("nothing-to-undo")
	codeChangedSince = finding.Lookup("changed-since")
)
