package rehearse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/keys"
)

// Config configures Run. The zero value rehearses one member and the custom resources.
type Config struct {
	Dir     string // parent of the folder; "" is the system's temporary folder
	Bump    int64  // --bump-revision of the restore; 0 is none
	Members int    // 0 is 1
	Sample  int    // objects of each kind for tried writes; 0 is 1,000

	Encryption   string // the file with the EncryptionConfiguration, "" for none
	Transformers *encryption.Transformers
	Converters   map[string]*conversion.Converter // replacements of conversion webhooks, by group

	APIServer         string // path of a kube-apiserver; "" is the linked apiextensions-apiserver
	ControllerManager string // path of a kube-controller-manager, "" for none; requires APIServer

	// Policies has the files of ValidatingAdmissionPolicies to evaluate on all objects.
	Policies policy.Choice

	// Phase is called at the beginning of each step.
	Phase func(name string)
	// Tell is called once with the report.
	Tell func(*Report) error
	// Hold, if not nil, is called after Tell if an API server runs. The servers run until it
	// returns.
	Hold func(ctx context.Context, config *rest.Config) error
}

// patience bounds the time until servers answer, even with much to read.
const patience = 10 * time.Minute

// rehearsal is one run.
type rehearsal struct {
	Config
	Report
	reader  *inspect.Reader
	box     *sandbox.Sandbox
	cluster *sandbox.Cluster
	storage keys.Storage       // of the API server
	server  *apiservers.Server // nil until it runs

	aggregated []string // names of removed APIServices
}

// step is a part of a rehearsal. detail is a short summary of its work.
type step struct {
	name string
	do   func(ctx context.Context) (detail string, err error)
}

// Run rehearses the snapshot of r. An error means a failed run; findings are in the report.
func Run(ctx context.Context, r *inspect.Reader, cfg Config) (err error) {
	run := &rehearsal{Config: cfg, reader: r, Report: Report{Steps: []Step{}, Kinds: []Kind{},
		NotChecked: []NotChecked{}}}
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
	if run.Found.Counts[codeServer]+run.Found.Counts[codeList] > 0 {
		if err := lookForCauses(ctx, run); err != nil {
			return err
		}
	}
	run.Found.Sort()
	err = run.Tell(&run.Report)
	if err == nil && run.Hold != nil && run.server != nil {
		err = run.Hold(ctx, run.server.Config)
	}
	return err
}

// step runs a step, and reports whether the next one can run.
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

// steps returns the steps of this run.
func (r *rehearsal) steps(ctx context.Context) ([]step, error) {
	steps := []step{{"verify the file", r.verify}, {"restore", r.restore}, {"start etcd", r.startEtcd},
		{"compare", r.compare}}
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

// Report is the result of a rehearsal.
type Report struct {
	Found      finding.Report
	Versions   Versions
	Restored   Restored
	Steps      []Step
	Kinds      []Kind
	NotChecked []NotChecked
}

// Versions holds the versions of the servers. An empty version did not run.
type Versions struct {
	Etcd       string `json:"etcd"`
	Kubernetes string `json:"kubernetes,omitempty"` // of the API server
	// "apiextensions-apiserver" (ours) or "kube-apiserver"
	APIServer         string `json:"apiServer,omitempty"`
	ControllerManager string `json:"controllerManager,omitempty"` // of the garbage collector
}

// Restored describes etcd after the restore, before writes of an API server.
type Restored struct {
	BumpRevision int64    `json:"bumpRevision"` // of etcdutl snapshot restore, with --mark-compacted
	Revision     int64    `json:"revision"`     // of etcd
	Keys         int      `json:"keys"`
	HashKV       string   `json:"hashKV"` // as in "etcdctl endpoint hashkv", equal on all members
	Members      []string `json:"members"`
}

// Step is a part of a rehearsal.
type Step struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail"` // short summary
}

// Kind holds the results for the objects of a resource.
type Kind struct {
	Resource    string   `json:"resource"`    // such as "widgets.example.com"
	Listed      []string `json:"versions"`    // with a complete list
	Objects     int      `json:"objects"`     // in the list; if it fails, the readable objects
	Tried       int      `json:"tried"`       // objects with a tried update and apply
	Terminating int      `json:"terminating"` // objects in deletion, which are not tried
	// unreadable objects, refused updates and refused applies
	Failed     int    `json:"failed"`
	NotChecked string `json:"notChecked,omitempty"` // reason of the first skipped check
}

// NotChecked is a skipped check.
type NotChecked struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Passed reports whether nothing fails.
func (r *Report) Passed() bool { return !r.Found.AtLeast(finding.Warning) }

func (r *Report) notChecked(what, reason string) {
	r.NotChecked = append(r.NotChecked, NotChecked{what, reason})
}

// timed adds a step that began at a time.
func (r *Report) timed(name string, began time.Time, detail string, passed bool) {
	seconds := float64(time.Since(began).Milliseconds()) / 1000
	r.Steps = append(r.Steps, Step{name, passed, seconds, detail})
}

// Differences holds the failures added or removed by a change.
type Differences struct {
	Broken []finding.Finding // fails only after the change
	Mended []finding.Finding // failed only before the change
}

// Compare compares rehearsals of a snapshot before and after a change.
func Compare(before, after *Report) (d Differences) {
	return Differences{Broken: lacking(after, before), Mended: lacking(before, after)}
}

// lacking returns the findings of one report missing in another.
func lacking(of, in *Report) (found []finding.Finding) {
	has := map[failure]bool{}
	for _, f := range in.Found.Findings {
		has[failureOf(f)] = true
	}
	for _, f := range of.Found.Findings {
		if !has[failureOf(f)] {
			found = append(found, f)
		}
	}
	return found
}

// failure identifies a failure across reports.
type failure struct {
	code      *finding.Code
	key, what string
}

// failureOf returns the identity of a failure: without a key, the reason; for a record, the
// beginning of the reason, such as "get at v1", "undecodable" or "member m1"; for a refused write
// only the key, because a change may change the storage version of the try, and the server's text
// varies.
func failureOf(f finding.Finding) failure {
	switch {
	case f.Key == "":
		return failure{f.Code, "", f.Reason}
	case f.Code == codeUpdate || f.Code == codeApply:
		return failure{f.Code, f.Key, ""}
	}
	what, _, found := strings.Cut(f.Reason, ": ")
	if !found {
		what = ""
	}
	return failure{f.Code, f.Key, what}
}

// Codes returns all codes of findings, by step.
func Codes() []*finding.Code {
	return slices.Concat([]*finding.Code{
		codeDamaged, codeRestore, codeEtcd, codeDiffers, codeAlarm, codeServer, codeRecords, codeMisplaced,
	}, policy.Codes(), []*finding.Code{codeList, codeUpdate, codeApply, codeCollected})
}

var (
	codeDamaged   = finding.Lookup("rehearse-damaged")
	codeRestore   = finding.Lookup("rehearse-restore")
	codeEtcd      = finding.Lookup("rehearse-etcd")
	codeDiffers   = finding.Lookup("rehearse-differs")
	codeAlarm     = finding.Lookup("rehearse-alarm")
	codeServer    = finding.Lookup("rehearse-api-server")
	codeMisplaced = finding.Lookup("rehearse-misplaced")
	codeRecords   = finding.Lookup("rehearse-records")
	codeList      = finding.Lookup("rehearse-list")
	codeUpdate    = finding.Lookup("rehearse-update") // a refused update
	codeApply     = finding.Lookup("rehearse-apply")  // a refused server-side apply
	codeCollected = finding.Lookup("rehearse-collected")
)
