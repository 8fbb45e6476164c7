package preparerestore

import (
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// step is one item of the work.
type step struct {
	name   string
	reason string
	on     condition
	works  []work
	byHand string // a step by hand after one that deleted objects; "" for none
}

// work is what a step does with each object of some resources, with commas between them; or with
// the whole storage, where it names none.
type work struct {
	resources string
	one       func(r *run, key keys.Key, e *transform.Entry) error
	all       func(r *run) error
}

// condition says when a step is taken, --only and --skip aside.
type condition string

const (
	always   condition = ""
	newKey   condition = "new-service-account-key" // these two are flags
	isolated condition = "isolate"
)

// steps lists all steps, in order: a later step sees what earlier ones deleted.
func steps() []step {
	const leases, slices, secrets = "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "secrets"
	of := func(all ...work) []work { return all }
	isolates := of(work{all: (*run).isolate})
	return []step{
		{"api-servers", "API servers of the old machines would stay endpoints of the Service kubernetes", always, of(
			work{"masterleases", (*run).dropMaster, nil}, work{"peerserverleases,storageversions.internal.apiserver.k8s.io", (*run).drop, nil},
			work{leases, (*run).dropServerLease, nil}, work{"endpoints," + slices, (*run).dropServerEndpoints, nil}), ""},
		{"leader-election", "a new controller waits until the lease of an old one is over", always, of(
			work{"leasecandidates.coordination.k8s.io", (*run).drop, nil}, work{leases, (*run).dropHeldLease, nil},
			work{"configmaps,endpoints", (*run).dropLeader, nil}), ""},
		{"nodes", "a Node that does not come back keeps its Pods, volumes and addresses", always, of(
			work{"nodes", (*run).dropNode, nil}, work{leases, (*run).dropNodeLease, nil},
			work{"csinodes.storage.k8s.io,ciliumnodes.cilium.io", (*run).dropNamed, nil},
			work{"resourceslices.resource.k8s.io", (*run).dropTied, nil}, work{"persistentvolumeclaims", (*run).dropSelection, nil},
			work{secrets, (*run).dropPassword, nil}), ""},
		{"pods", "a Pod of a machine that is gone seems to run, and no controller makes it anew", always,
			of(work{"pods", (*run).dropPod, nil}), ""},
		{"dependents", "the garbage collector would delete what only deleted Nodes and Pods own", always,
			of(work{all: (*run).dropDependents}), ""},
		{"endpoints", "Services would send to Pods that are gone", always,
			of(work{slices, (*run).trimSlice, nil}, work{"endpoints", (*run).trimSubsets, nil}), ""},
		{"volume-attachments", "a volume that seems attached to an old machine is attached to no new one", always,
			of(work{"volumeattachments.storage.k8s.io", (*run).dropAttachment, nil}),
			"volume-attached: VolumeAttachments were deleted; detach the volumes from the old machines in the storage before Pods need them"},
		{"certificate-requests", "requests of the old machines for certificates", always,
			of(work{"certificatesigningrequests.certificates.k8s.io,podcertificaterequests.certificates.k8s.io", (*run).drop, nil}), ""},
		{"events", "what happened on the old machines", always, of(work{"events", (*run).drop, nil}), ""},
		{"bootstrap-tokens", "a machine could join with a token of the old cluster", always, of(work{secrets, (*run).dropBootstrapToken, nil}),
			"bootstrap tokens were deleted: `kubeadm token create` makes one for the new machines"},
		{"service-account-tokens", "API servers with a new key refuse tokens signed by the old one", newKey,
			of(work{secrets, (*run).emptyToken, nil}), ""},
		{"webhooks", "a webhook whose Pods do not run yet refuses the writes that start them", always, of(work{
			"validatingwebhookconfigurations.admissionregistration.k8s.io,mutatingwebhookconfigurations.admissionregistration.k8s.io",
			(*run).ignoreFailures, nil}), ""},
		{"api-services", "an aggregated API server that does not answer stops the deletion of namespaces", always,
			of(work{"apiservices.apiregistration.k8s.io", (*run).dropSilent, nil}), ""},
		{"workloads", "no Pod starts, so that none acts on the world", isolated, isolates, ""},
		{"jobs", "no Job or CronJob starts Pods", isolated, isolates, ""},
		{"load-balancers", "no cloud controller takes over, changes or deletes a load balancer", isolated, isolates, ""},
		{"volumes", "deleting a claim deletes no disk of production", isolated, isolates, ""},
		{"controllers", "controllers that act outside of the cluster are paused by their own switches", isolated, isolates, ""},
	}
}

// take takes a step.
func (r *run) take(s step) error {
	for _, w := range s.works {
		if w.all != nil {
			if err := w.all(r); err != nil {
				return err
			}
			continue
		}
		for resource := range strings.SplitSeq(w.resources, ",") {
			if err := r.each(resource, w.one); err != nil {
				return err
			}
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

// chosen returns the steps that a command line asks for.
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
