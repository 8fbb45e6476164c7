package preparerestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// prepare is the transform of the command.
type prepare struct {
	steps    []step
	keep     map[string]bool // names of kept Nodes
	running  []string        // of --keep-running
	isolated bool
	all      bool // neither --only nor --skip is given
}

// run is the work below one storage prefix.
type run struct {
	*prepare
	ctx     context.Context
	view    *transform.View
	prefix  string // storage prefix
	types   *inspect.Types
	finder  *machines.Finder
	section *Prepared
	step    *Step           // current step
	removed map[string]bool // UIDs of deleted Nodes and Pods
	masters bool            // an address of an API server was deleted
	freed   *objects.Freed
}

// Plan runs the steps in order, below each storage prefix.
func (p *prepare) Plan(ctx context.Context, v *transform.View) error {
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return err
	}
	cluster, err := clusterOf(ctx, v, prefixes)
	if err != nil {
		return err
	}
	section := &Prepared{Prepared: []Step{}, Undo: []Change{}, Cluster: cluster}
	for _, s := range p.steps {
		section.Prepared = append(section.Prepared, Step{Step: s.name, Reason: s.reason})
	}
	v.Report().Sections = append(v.Report().Sections, section)
	finder, err := machines.NewFinder(ctx, v, prefixes...)
	if err != nil {
		return err
	}
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	if known, err := p.knowsNodes(ctx, v, prefixes); err != nil || !known {
		return err
	}
	for _, prefix := range prefixes {
		r := &run{
			prepare: p, ctx: ctx, view: v, prefix: prefix,
			types: types, finder: finder, section: section, removed: map[string]bool{}, freed: objects.NewFreed(v),
		}
		for i, s := range p.steps {
			r.step = &section.Prepared[i]
			if err := r.take(s); err != nil {
				return err
			}
		}
		for _, finish := range []func() error{r.follow, func() error { return r.freed.Report(ctx) }, r.byHand} {
			if err := finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// storage returns the objects below the prefix.
func (r *run) storage() machines.Storage { return machines.Storage{Source: r.view, Prefix: r.prefix} }

// clusterOf returns the UID of the namespace kube-system, which identifies a cluster, or "".
func clusterOf(ctx context.Context, v *transform.View, prefixes []string) (string, error) {
	for _, prefix := range prefixes {
		e, err := v.Get(ctx, []byte(prefix+"/namespaces/kube-system"))
		if err != nil {
			return "", err
		}
		if e == nil || e.Undecryptable != nil {
			continue
		}
		if meta, err := encoding.ReadMeta(e.Value); err == nil && meta.UID != "" {
			return meta.UID, nil
		}
	}
	return "", nil
}

// knowsNodes reports whether each name of --keep-node belongs to a Node, and raises findings for
// the others.
func (p *prepare) knowsNodes(ctx context.Context, v *transform.View, prefixes []string) (bool, error) {
	missing := map[string]bool{}
	for name := range p.keep {
		missing[name] = true
	}
	for _, prefix := range prefixes {
		nodes := machines.Storage{Source: v, Prefix: prefix}
		err := stream.Each(nodes.Live(ctx, "nodes", ""), func(e *transform.Entry) error {
			delete(missing, strings.TrimPrefix(string(e.Key), string(nodes.Dir("nodes", ""))))
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		v.Raise("", codeKeepNode.Because("--keep-node %s", name))
	}
	return len(missing) == 0, nil
}

// lost reports whether a node does not return after the restore.
func (p *prepare) lost(node string) bool { return node != "" && !p.keep[node] }

// readable reports whether the value of an entry can be read, and raises a finding otherwise.
func (r *run) readable(e *transform.Entry) bool {
	if e.Undecryptable != nil {
		r.view.Raise(string(e.Key), transform.Unreadable(e.Undecryptable))
		return false
	}
	return r.view.Readable(e)
}

// drop deletes an object, and records its UID for dependents.
func (r *run) drop(e *transform.Entry) error {
	if meta, err := encoding.ReadMeta(e.Value); err == nil {
		if meta.UID != "" {
			r.removed[meta.UID] = true
		}
		if len(meta.Finalizers) > 0 && !expected(meta) {
			r.view.Raise(string(e.Key), transform.CodeFinalizers.Because("its finalizers do not run: %s",
				finding.List(meta.Finalizers)))
		}
	}
	r.freed.Deleted(e)
	r.step.Deleted++
	return r.view.Delete(r.ctx, e.Key)
}

// expected reports whether the finalizers of a deleted object protect only state of the lost
// machine: Job Pods to be counted, and volumes to be detached in any case.
func expected(meta encoding.Meta) bool {
	return meta.Kind == "VolumeAttachment" || meta.Kind == "Pod" &&
		slices.Equal(meta.Finalizers, []string{"batch.kubernetes.io/job-tracking"})
}

// put stages new content for an object, and counts the change.
func (r *run) put(o *inspect.Object, content map[string]any) (staged bool, err error) {
	staged, err = r.view.PutObject(r.ctx, o, content)
	if staged && err == nil {
		r.step.Changed++
	}
	return staged, err
}

// putSaved stages an object, and saves its original fields for --undo.
func (r *run) putSaved(o *inspect.Object, content map[string]any) error {
	staged, err := r.put(o, content)
	if err != nil || !staged {
		return err
	}
	was, is := changed(o.Content, content)
	return r.save(o.Key, withIdentity(was, o.Content), is)
}

// object decodes an entry of a resource, or returns nil for an unreadable value (reported).
func (r *run) object(e *transform.Entry) *inspect.Object {
	key, err := e.ParseKey()
	if err != nil || !r.readable(e) {
		return nil
	}
	o := inspect.NewObject(r.types.Of(key.Resource), e)
	if o.Err != nil {
		r.view.Raise(string(e.Key), transform.Unreadable(o.Err))
		return nil
	}
	return o
}

// save stores an object in the report; after is nil for a deleted object.
func (r *run) save(key []byte, saved, after map[string]any) error {
	hide, err := r.view.Secrets(r.ctx)
	if err = cmp.Or(err, r.view.Save(r.ctx, key, saved)); err != nil {
		return err
	}
	after = runtime.DeepCopyJSON(after)
	hide.Object(key, after)
	is, err := json.Marshal(after)
	r.section.Undo = append(r.section.Undo, Change{Key: string(key), Step: r.step.Step, After: is})
	return err
}

// tied groups objects with the same tie to the old machines.
type tied struct {
	code    *finding.Code
	subject string
	first   string // key
	objects int
}

// byHand adds manual steps for the remaining ties to the old machines. doctor finds the same ties
// in the output.
func (r *run) byHand() error {
	var all []*tied
	known, encrypted := map[[2]string]*tied{}, false
	for e, err := range r.view.Below(r.ctx, r.prefix) {
		if err != nil {
			return err
		}
		encrypted = encrypted || encoding.Detect(e.Stored) == encoding.FormatEncrypted
		if !r.view.Readable(e) || e.Check() != nil { // undecryptable values and unknown kinds have no ties
			continue
		}
		for _, tie := range r.finder.Ties(e) {
			if r.keep[tie.Node] {
				continue
			}
			way := [2]string{tie.Code.Name, tie.Subject}
			if known[way] == nil {
				known[way] = &tied{tie.Code, tie.Subject, string(e.Key), 0}
				all = append(all, known[way])
			}
			known[way].objects++
		}
	}
	slices.SortStableFunc(all, func(a, b *tied) int {
		return slices.Index(machines.Codes(), a.code) - slices.Index(machines.Codes(), b.code)
	})
	r.addFirstSteps(encrypted)
	r.addRemedies(all)
	r.view.Report().AddStepBefore("in the restore commands, replace the names and addresses of the old members by " +
		"those of the new machines: " +
		"--name, --initial-cluster and --initial-advertise-peer-urls")
	if n := len(r.section.Undo); n > 0 {
		r.view.Report().AddStep("keep the report: its \"saved\" has objects as they were (%d). --undo puts them back "+
			"in a snapshot; on the cluster, "+
			"put back webhooks and APIServices when the Pods behind them run (docs/guides/prepare-restore.md)", n)
	}
	return nil
}

// addFirstSteps adds the first manual steps.
func (r *run) addFirstSteps(encrypted bool) {
	add := r.view.Report().AddStepBefore
	if !r.isolated {
		add("stop the old cluster, and keep it off: two clusters would act on the same volumes, load balancers " +
			"and addresses")
	}
	if encrypted {
		add("give the API servers of the new machines the EncryptionConfiguration with the keys of the old ones: " +
			"values are encrypted, " +
			"and no list with one of them works without its key")
	}
}

// addRemedies adds a manual step for each code. Ranges, keys and certificates are needed before the
// restore.
func (r *run) addRemedies(all []*tied) {
	var found []string // objects of one code
	for i, t := range all {
		such := ", "
		if t.objects > 1 {
			such = ", such as "
		}
		found = append(found, machines.Worded(t.code, t.objects, t.subject)+such+t.first)
		if i+1 < len(all) && all[i+1].code == t.code {
			continue
		}
		add := r.view.Report().AddStep
		if t.code == machines.CodeServiceRange || t.code == machines.CodeTokenKey || t.code == machines.CodeClusterCA {
			add = r.view.Report().AddStepBefore
		}
		add("%s: %s. %s", t.code.Name, strings.Join(found, "; "), r.ownRemedy(t.code))
		found = nil
	}
}

// ownRemedy returns the remedy of a code, without advice to repeat this run.
func (r *run) ownRemedy(code *finding.Code) string {
	first, rest, _ := strings.Cut(code.Remedy, ". ")
	if r.all && strings.HasPrefix(first, "`etcdshift prepare-restore`") {
		return rest
	}
	return strings.NewReplacer("`etcdshift prepare-restore --new-service-account-key`",
		"this command with `--new-service-account-key`",
		"`etcdshift prepare-restore`", "this command without `--skip` and `--only`", "Stop the old cluster first. ",
		"").Replace(code.Remedy)
}

// contains reports whether a value may have a field or label; it is cheaper than decoding.
func contains(value []byte, text string) bool { return bytes.Contains(value, []byte(text)) }

// Prepared is the section of the report of "prepare-restore".
type Prepared struct {
	Prepared []Step   `json:"prepared,omitempty"` // completed steps, in order
	Undo     []Change `json:"undo,omitempty"`     // changes that --undo can revert; each key is also in saved
	Cluster  string   `json:"cluster,omitempty"`  // UID of the namespace kube-system, for --undo
}

// Step describes the result of one step.
type Step struct {
	Step    string `json:"step"`
	Reason  string `json:"reason"`
	Deleted int    `json:"deleted"` // objects
	Changed int    `json:"changed"` // objects
}

// Change is a change that --undo can revert.
type Change struct {
	Key  string `json:"key"`
	Step string `json:"step"`
	// After has the changed fields as written; absent for a deleted object.
	After json.RawMessage `json:"after"`
}

// Tables lists the steps with their numbers of changes.
func (p *Prepared) Tables(outcome transform.Outcome) []transform.Table {
	if outcome == transform.Refused {
		return nil
	}
	t := transform.Table{Header: []any{"STEP", "DELETED", "CHANGED", "REASON"}}
	for _, s := range p.Prepared {
		t.Rows = append(t.Rows, []any{s.Step, s.Deleted, s.Changed, s.Reason})
	}
	return []transform.Table{t}
}
