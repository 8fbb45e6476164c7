package preparerestore

import (
	"context"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	stepsCategory   = "Which steps (default: all but service-account-tokens and those of --isolate)"
	isolateCategory = "A copy beside production"
)

// Spec is the command "prepare-restore".
var Spec = transform.Spec{
	Name:  "prepare-restore",
	Usage: "prepare a snapshot for a restore on other machines, or beside production",
	Examples: `etcdshift prepare-restore before.db after.db
etcdshift prepare-restore --keep-node n1 --keep-node n2 \
    before.db after.db
etcdshift prepare-restore --isolate --report report.json \
    before.db copy.db
etcdshift prepare-restore --undo report.json \
    copy.db back.db`,
	Text: `Removes the objects that depend on the old machines, as found by "doctor --for new-machines": lost Nodes
with their Leases, CSINodes, VolumeAttachments and Pods, so that controllers create new ones; leases of API servers
and leaders; certificate requests, Events and bootstrap tokens. Webhooks in the cluster become failurePolicy Ignore,
and APIServices without a running server are deleted: --undo restores both from "saved" in the report. Each step has
a name for --only and --skip: ` +
		strings.Join(stepNames(), ", ") + `.

With --isolate the restored cluster changes nothing outside: workloads have no Pods, Jobs and CronJobs are suspended,
Services have no load balancers, volumes are retained, and controllers such as Argo CD, Flux or Cluster API are
paused with their own switches. docs/guides/prepare-restore.md lists all changes and the way to undo each. DNS and
kube-proxy in kube-system keep running, and so do the workloads of --keep-running.

Work outside the snapshot, such as data on the disks of the old machines, is listed as manual steps.`,
	Codes:    codes(),
	Settles:  map[string]string{codeKeepNode.Name: "spell --keep-node as \"etcdshift get IN nodes\" prints the Node"},
	Sections: []transform.Section{&Prepared{}},
	Flags:    flags(),
	New:      newFromArgs,
}

func flags() []transform.Flag {
	return []transform.Flag{
		{Name: "keep-node", Default: []string{}, Usage: "keep the Node `NAME` with its Pods and volumes; may " +
			"be repeated"},
		{Name: "only", Category: stepsCategory, Default: []string{}, Choices: stepNames(),
			Usage: "run only `STEP`; may be repeated"},
		{Name: "skip", Category: stepsCategory, Default: []string{}, Choices: stepNames(),
			Usage: "omit `STEP`; may be repeated"},
		{Name: string(newKey), Category: stepsCategory, Default: false,
			Usage: "empty the Secrets with tokens of ServiceAccounts: API servers with a new signing key fill " +
				"them again"},
		{Name: string(isolated), Category: isolateCategory, Default: false,
			Usage: "prevent the restored cluster from changing anything outside"},
		{Name: "keep-running", Category: isolateCategory, Default: []string{},
			Usage: "keep the Pods of a workload: `NAMESPACE/NAME`, or NAMESPACE for all its workloads; " +
				"may be repeated"},
		{Name: "undo", Category: isolateCategory,
			Usage: "undo the changes of an earlier run with the report `REPORT`, and change nothing else"},
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

// codes returns the codes of problems, and those of ties to machines, used in manual steps.
func codes() []*finding.Code {
	tied := slices.DeleteFunc(machines.Codes(), func(c *finding.Code) bool {
		return c == machines.CodeOldNodes ||
			c == machines.CodeNotInFile
	})
	return slices.Concat([]*finding.Code{codeKeepNode, codeBarePod, transform.CodeFinalizers, codeChangedSince,
		codeOtherCluster,
		codeNothingSaved, transform.CodeUnsupportedLayout}, objects.FreedCodes(), transform.ObjectCodes(), tied)
}

var (
	codeKeepNode     = finding.Lookup("keep-node-unknown")
	codeBarePod      = finding.Lookup("bare-pod")
	codeOtherCluster = finding.Lookup("other-cluster")
	codeNothingSaved = finding.Lookup("nothing-to-undo")
	codeChangedSince = finding.Lookup("changed-since")
)

// step is a named, optional part of the preparation.
type step struct {
	name   string
	reason string
	on     condition
	works  []work
	byHand string // manual step after deletions; "" for none
}

// work is a part of a step, below one storage prefix.
type work func(r *run) error

// each returns work that calls do for each object with a parsable key of the resources, separated
// by commas, such as "leases.coordination.k8s.io".
func each(resources string, do func(*run, keys.Key, *transform.Entry) error) work {
	return func(r *run) error {
		for resource := range strings.SplitSeq(resources, ",") {
			err := stream.Each(r.storage().Live(r.ctx, resource, ""), func(e *transform.Entry) error {
				key, err := keys.Kubernetes{Prefix: r.prefix}.Parse(e.Key)
				if err != nil {
					return nil
				}
				return do(r, key, e)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// drop returns work that deletes the objects selected by picks, or all objects for nil.
func drop(resources string, picks func(*run, keys.Key, *transform.Entry) bool) work {
	return each(resources, func(r *run, key keys.Key, e *transform.Entry) error {
		if picks != nil && !picks(r, key, e) {
			return nil
		}
		return r.drop(e)
	})
}

// condition is the flag that enables a step, regardless of --only and --skip.
type condition string

const (
	always   condition = ""
	newKey   condition = "new-service-account-key" // the name of a flag, like the next
	isolated condition = "isolate"
)

// steps returns all steps, in order: a later step sees deletions of earlier steps.
func steps() []step {
	const leases, slices, secrets = "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "secrets"
	of := func(all ...work) []work { return all }
	return []step{
		{"api-servers", "API servers of the old machines would stay endpoints of the Service kubernetes", always, of(
			drop("masterleases", isMaster), drop("peerserverleases,storageversions.internal.apiserver.k8s.io", nil),
			drop(leases, isServerLease), drop("endpoints,"+slices, isServerEndpoints)), ""},
		{"leader-election", "a new controller waits until the lease of an old one is over", always, of(
			drop("leasecandidates.coordination.k8s.io", nil), drop(leases, isHeld),
			each("configmaps,endpoints", dropLeader)), ""},
		{"nodes", "a Node that does not come back keeps its Pods, volumes and addresses", always, of(
			each("nodes", dropNode), drop(leases, isLostLease),
			drop("csinodes.storage.k8s.io,ciliumnodes.cilium.io", isNamedLost),
			drop("resourceslices.resource.k8s.io", isTiedToLost),
			each("persistentvolumeclaims", dropSelection), drop(secrets, isPassword)), ""},
		{"pods", "a Pod of a machine that is gone seems to run, and no controller makes it anew", always,
			of(drop("pods", isLostPod)), ""},
		{"dependents", "the garbage collector would delete what only deleted Nodes and Pods own", always,
			of(dropDependents), ""},
		{"endpoints", "Services would send to Pods that are gone", always,
			of(each(slices, trimSlice), each("endpoints", trimSubsets)), ""},
		{"volume-attachments", "a volume that seems attached to an old machine is attached to no new one", always,
			of(drop("volumeattachments.storage.k8s.io", isAttachment)),
			"volume-attached: VolumeAttachments were deleted; detach the volumes from the old machines in the " +
				"storage before Pods need them"},
		{"certificate-requests", "requests of the old machines for certificates", always,
			of(drop("certificatesigningrequests.certificates.k8s.io,podcertificaterequests.certificates.k8s.io", nil)),
			""},
		{"events", "what happened on the old machines", always, of(drop("events", nil)), ""},
		{"bootstrap-tokens", "a machine could join with a token of the old cluster", always,
			of(drop(secrets, isBootstrapToken)),
			"bootstrap tokens were deleted: `kubeadm token create` makes one for the new machines"},
		{"service-account-tokens", "API servers with a new key refuse tokens signed by the old one", newKey,
			of(each(secrets, emptyToken)), ""},
		{"webhooks", "a webhook whose Pods do not run yet refuses the writes that start them", always, of(each(
			"validatingwebhookconfigurations.admissionregistration.k8s.io,"+
				"mutatingwebhookconfigurations.admissionregistration.k8s.io",
			ignoreFailures)), ""},
		{"api-services", "an aggregated API server that does not answer stops the deletion of namespaces", always,
			of(each("apiservices.apiregistration.k8s.io", dropSilent)), ""},
		{"workloads", "no Pod starts, so that none acts on the world", isolated, of(isolate), ""},
		{"jobs", "no Job or CronJob starts Pods", isolated, of(isolate), ""},
		{"load-balancers", "no cloud controller takes over, changes or deletes a load balancer", isolated,
			of(isolate), ""},
		{"volumes", "deleting a claim deletes no disk of production", isolated, of(isolate), ""},
		{"controllers", "controllers that act outside of the cluster are paused by their own switches", isolated,
			of(isolate), ""},
	}
}

// take runs a step.
func (r *run) take(s step) error {
	for _, work := range s.works {
		if err := work(r); err != nil {
			return err
		}
	}
	if s.byHand != "" && r.step.Deleted > 0 {
		r.view.Report().AddStep("%s", s.byHand)
	}
	return nil
}

// stepNames returns the names of all steps, for flags.
func stepNames() (names []string) {
	for _, s := range steps() {
		names = append(names, s.name)
	}
	return names
}

// chosen returns the steps selected by a command line.
func chosen(a *transform.Args) (of []step, err error) {
	only, skip := a.StringSlice("only"), a.StringSlice("skip")
	for _, name := range slices.Concat(only, skip) {
		if !slices.Contains(stepNames(), name) {
			return nil, transform.Usagef("%q is no step; there are %v", name, stepNames())
		}
	}
	for _, s := range steps() {
		switch {
		case slices.Contains(skip, s.name), len(only) > 0 && !slices.Contains(only, s.name):
		case s.on == isolated && !a.Bool(string(isolated)):
			if slices.Contains(only, s.name) {
				return nil, transform.Usagef("--only %s takes --isolate", s.name)
			}
		case s.on == newKey && !a.Bool(string(newKey)) && len(only) == 0:
		default:
			of = append(of, s)
		}
	}
	if len(of) == 0 {
		return nil, transform.Usagef("--only and --skip leave no step")
	}
	return of, nil
}
