package rehearse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/sandbox/etcd"
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/keys"
)

// Config configures Run. The zero value rehearses one member and the custom resources.
type Config struct {
	Dir     string // in which the folder is made; "" is the system's temporary one
	Bump    int64  // --bump-revision of the restore; 0 is none
	Members int    // 0 is 1
	Sample  int    // objects of a kind that writes are tried with; 0 is 1,000

	Encryption   string // the file with the EncryptionConfiguration, "" for none
	Transformers *encryption.Transformers
	Converters   map[string]*conversion.Converter // that stand in for conversion webhooks, by group

	APIServer         string // path of a kube-apiserver; "" is the apiextensions-apiserver that is linked in
	ControllerManager string // path of a kube-controller-manager, "" for none; it takes APIServer

	// Policies has the files of ValidatingAdmissionPolicies that all objects are to meet.
	Policies policy.Choice

	// Phase is told what begins.
	Phase func(name string)
	// Tell is given the report once.
	Tell func(*Report) error
	// Hold, if not nil, is called then, if an API server runs. The servers run until it returns.
	Hold func(ctx context.Context, config *rest.Config) error
}

// patience is how long servers may take until they answer, with much to read.
const patience = 10 * time.Minute

// rehearsal is one run.
type rehearsal struct {
	Config
	Report
	reader  *inspect.Reader
	box     *sandbox.Sandbox
	cluster *etcd.Cluster
	storage keys.Storage       // of the API server
	server  *apiservers.Server // nil until it runs

	aggregated []string // names of APIServices that were taken away
}

// step is a part of a rehearsal. Detail says in a few words what it did.
type step struct {
	name string
	do   func(ctx context.Context) (detail string, err error)
}

// Run rehearses the snapshot of r. An error means that it could not; a finding is in the report.
func Run(ctx context.Context, r *inspect.Reader, cfg Config) (err error) {
	run := &rehearsal{Config: cfg, reader: r, Report: Report{Steps: []Step{}, Kinds: []Kind{}, NotChecked: []NotChecked{}}}
	run.Restored.Members = []string{}
	run.Members = max(1, cfg.Members)
	run.Versions.Etcd, run.Found.Counts = version.Version, map[*finding.Code]int{}
	steps, err := run.steps(ctx)
	if err != nil {
		return err
	}
	run.box, err = sandbox.New(cfg.Dir, run.space())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		err = errors.Join(err, run.box.Close())
	}()
	for _, s := range steps {
		passed, err := run.step(ctx, s)
		if err != nil {
			return err
		}
		if !passed {
			run.notChecked("the steps after "+s.name, "it failed")
			break
		}
	}
	run.Found.Sort()
	err = run.Tell(&run.Report)
	if err == nil && run.Hold != nil && run.server != nil {
		err = run.Hold(ctx, run.server.Config)
	}
	return err
}

// step runs a step, and tells whether the next one can.
func (r *rehearsal) step(ctx context.Context, s step) (goOn bool, err error) {
	r.Phase(s.name)
	before, began := r.Found.Count(finding.Error)+r.Found.Count(finding.Warning), time.Now()
	detail, err := s.do(ctx)
	f := finding.Of(err)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case f != nil:
		r.Found.Add(f)
		detail = f.Reason
	case err != nil:
		return false, fmt.Errorf("%s: %w", s.name, err)
	}
	r.timed(s.name, began, detail, before == r.Found.Count(finding.Error)+r.Found.Count(finding.Warning))
	return f == nil, nil
}

// steps are the steps of this run.
func (r *rehearsal) steps(ctx context.Context) ([]step, error) {
	steps := []step{{"verify the file", r.verify}, {"restore", r.restore}, {"start etcd", r.startEtcd}, {"compare", r.compare}}
	layouts, err := r.reader.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	foreign := func(s keys.Storage) bool { return s.Flavour == keys.FlavourOpenShift }
	if len(slices.DeleteFunc(slices.Clone(layouts.Storages()), foreign)) == 0 {
		r.notChecked("objects", "no storage prefix of Kubernetes was found; name it with --prefix")
		return steps, nil
	}
	r.storage, err = serve.Storage(layouts)
	if errors.Is(err, serve.ErrKCP) {
		return append(steps, step{"check records of kcp", r.diagnose}), nil
	} else if err != nil {
		return nil, err
	}
	if len(r.Policies.Files) > 0 {
		steps = append(steps, step{"meet policies", r.meetPolicies})
	}
	steps = append(steps, step{"start the API server", r.startServer}, step{"list and write", r.try})
	if r.ControllerManager != "" {
		steps = append(steps, step{"collect garbage", r.collect})
	}
	return steps, nil
}
