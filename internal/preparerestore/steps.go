package preparerestore

import (
	"slices"

	"github.com/etcdshift/etcdshift/transform"
)

// step is one item of the work.
type step struct {
	name   string
	reason string
	on     condition
	run    func(*run)
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
	return []step{
		{"api-servers", "API servers of the old machines would stay endpoints of the Service kubernetes", always, (*run).apiServers},
		{"leader-election", "a new controller waits until the lease of an old one is over", always, (*run).leaderElection},
		{"nodes", "a Node that does not come back keeps its Pods, volumes and addresses", always, (*run).nodes},
		{"pods", "a Pod of a machine that is gone seems to run, and no controller makes it anew", always, (*run).pods},
		{"dependents", "the garbage collector would delete what only deleted Nodes and Pods own", always, (*run).dependents},
		{"endpoints", "Services would send to Pods that are gone", always, (*run).endpoints},
		{"volume-attachments", "a volume that seems attached to an old machine is attached to no new one", always, (*run).volumeAttachments},
		{"certificate-requests", "requests of the old machines for certificates", always, (*run).certificateRequests},
		{"events", "what happened on the old machines", always, (*run).events},
		{"bootstrap-tokens", "a machine could join with a token of the old cluster", always, (*run).bootstrapTokens},
		{"service-account-tokens", "API servers with a new key refuse tokens signed by the old one", newKey, (*run).serviceAccountTokens},
		{"webhooks", "a webhook whose Pods do not run yet refuses the writes that start them", always, (*run).webhooks},
		{"api-services", "an aggregated API server that does not answer stops the deletion of namespaces", always, (*run).apiServices},
		{"workloads", "no Pod starts, so that none acts on the world", isolated, (*run).isolate},
		{"jobs", "no Job or CronJob starts Pods", isolated, (*run).isolate},
		{"load-balancers", "no cloud controller takes over, changes or deletes a load balancer", isolated, (*run).isolate},
		{"volumes", "deleting a claim deletes no disk of production", isolated, (*run).isolate},
		{"controllers", "controllers that act outside of the cluster are paused by their own switches", isolated, (*run).isolate},
	}
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
