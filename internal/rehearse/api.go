package rehearse

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/discovery"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/keys"
)

// isolate prevents an API server on the store from contacting other servers, and reports the
// omitted checks.
func (r *rehearsal) isolate(ctx context.Context) error {
	relay, err := apiservers.NewRelay(ctx, r.Converters)
	if err != nil {
		return err
	}
	done, err := apiservers.Isolate(ctx, r.cluster.Client(), r.storage.Prefix, r.Transformers, relay)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return codeEtcd.Because("it takes no writes: %s", r.cluster.Explain(err))
	}
	for _, w := range done.Webhooks {
		if !w.Asked {
			r.notChecked("conversion of "+w.CRD, "its webhook is not asked: name one with --conversion-webhook or "+
				"--conversion-exec")
		}
	}
	r.aggregated = done.Aggregated
	for _, name := range done.Aggregated {
		r.notChecked("APIService "+name, "an aggregated API server answers for it")
	}
	for _, u := range done.Unreadable {
		r.notChecked(u.Key, u.Reason.Error())
	}
	return nil
}

// startServer starts the API server.
func (r *rehearsal) startServer(ctx context.Context) (string, error) {
	if err := r.isolate(ctx); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	store := apiservers.Store{Etcd: r.cluster.Members[0].Endpoint, Prefix: r.storage.Prefix, Encryption: r.Encryption}
	var err error
	if r.APIServer != "" {
		services := apiservers.ServiceRange(ctx, r.cluster.Client(), r.storage.Prefix, r.Transformers)
		r.server, err = apiservers.Kube{Store: store, Binary: r.APIServer, Services: services}.Start(ctx, r.box)
	} else {
		r.server, err = store.Start(ctx, r.box)
	}
	var serving apiservers.Serving
	if err == nil {
		if err = r.addVersion(); err != nil {
			err = r.explain(err)
		} else {
			serving, err = r.server.Ready(ctx)
		}
	}
	if errors.As(err, new(*sandbox.Died)) || errors.Is(err, context.DeadlineExceeded) {
		return "", codeServer.Because("%s", err)
	} else if err != nil {
		return "", err
	}
	for _, u := range serving.Unserved {
		r.Found.Add(codeServer.Because("%s is not served at %s: %s", u.CRD, u.Version,
			u.Reason).At(r.definitionKey(u.CRD)))
	}
	for _, u := range serving.Unready {
		r.Found.Add(codeServer.Because("%s", u))
	}
	r.addCoverage()
	return fmt.Sprintf("%d versions of custom resources answer", len(serving.Versions)), nil
}

// addVersion adds the release of the API server.
func (r *rehearsal) addVersion() error {
	r.Versions.APIServer, r.Versions.Kubernetes = "kube-apiserver", ""
	if r.APIServer == "" {
		r.Versions.APIServer, r.Versions.Kubernetes = "apiextensions-apiserver",
			strings.TrimPrefix(serve.KubernetesVersion(), "v")
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(r.server.Config)
	if err != nil {
		return err
	}
	v, err := client.ServerVersion()
	if err == nil {
		r.Versions.Kubernetes = strings.TrimPrefix(v.GitVersion, "v")
	}
	return err
}

// addCoverage lists the limits of every rehearsal.
func (r *rehearsal) addCoverage() {
	if r.APIServer == "" {
		r.notChecked("built-in kinds", "this API server has custom resources alone: give yours with --kube-apiserver")
		r.notChecked("the rules of your release", "the API server is that of Kubernetes "+r.Versions.Kubernetes)
	}
	r.notChecked("admission webhooks and quota", "no webhook is asked")
}

// definitionKey returns the key of a CustomResourceDefinition.
func (r *rehearsal) definitionKey(name string) string {
	return string(keys.Kubernetes{Prefix: r.storage.Prefix}.Format(keys.Key{Prefix: r.storage.Prefix,
		Resource: keys.DefinitionType(), Name: name}))
}

// explain returns the reason if a server has ended; otherwise err.
func (r *rehearsal) explain(err error) error {
	all := []*sandbox.Process{r.server.Process}
	for _, m := range r.cluster.Members {
		all = append(all, m.Process)
	}
	return sandbox.Explain(err, all...)
}

// diagnose checks the records of a kcp snapshot in the file: only kcp's own API server serves
// logical clusters.
func (r *rehearsal) diagnose(ctx context.Context) (string, error) {
	found, err := doctor.Examine(ctx, r.reader, doctor.Options{Keys: r.Transformers != nil})
	if err != nil {
		return "", err
	}
	added := 0
	for _, f := range found.Findings {
		if f.Level == finding.Error || f.Code == doctor.CodeUpdateRefused || f.Code == doctor.CodeApplyRefused {
			r.Found.Add(codeRecords.Because("%s: %s", f.Code.Name, f.Reason).At(f.Key))
			added++
		}
	}
	r.notChecked("the API of kcp", "it serves logical clusters, which this API server does not: objects are checked "+
		"from the file, as doctor does")
	return fmt.Sprintf("findings of doctor: %d", added), nil
}

// meetPolicies evaluates the policies on the objects of the file, as at their next writes.
func (r *rehearsal) meetPolicies(ctx context.Context) (detail string, err error) {
	err = r.reader.Snapshot().Guard(func() error {
		set, err := r.Policies.Load(ctx, policy.Validating)
		if err != nil {
			return err
		}
		if err := r.Policies.Complete(ctx, set, r.reader); err != nil {
			return err
		}
		e, err := policy.New(ctx, set, r.reader, policy.Options{})
		if err != nil {
			return err
		}
		objects, err := policy.Check(ctx, e, r.reader, &r.Found)
		detail = fmt.Sprintf("policies: %s; objects that their rules name: %d", policy.Names(e.Of(policy.Validating)),
			objects)
		return err
	})
	return detail, err
}
