package remove

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Delete deletes the objects of a choice.
type Delete struct {
	choice       *objects.Choice
	keep, orphan bool
	scrub        bool // remove all records of the deleted objects, of any revision, and all free pages
}

// Plan stages the deletions.
func (d *Delete) Plan(ctx context.Context, v *transform.View) error {
	r, err := newRun(ctx, v, d.scrub)
	if err != nil {
		return err
	}
	dependents := r.collect
	if d.orphan {
		dependents = r.releaseDependents
	}
	return r.do(func() error { return r.deleteChosen(d) }, r.deleteContents, r.deleteAddresses, r.clean, r.checkAdmins,
		r.strand, dependents, r.checkClaims, func() error { return r.freed.Report(ctx) })
}

func newRun(ctx context.Context, v *transform.View, scrub bool) (*run, error) {
	types, err := v.Types(ctx)
	v.Make(transform.Output{Anew: scrub})
	return &run{
		ctx: ctx, view: v, types: types, gone: map[objects.UID]bool{}, section: newRemoved(v.Report().CountUIDs),
		spaces: map[place]*left{}, definitions: map[folder]*left{}, claims: map[objects.UID]bool{},
		freed: objects.NewFreed(v), deleted: map[string]bool{}, scrub: scrub, storage: codeStorage,
	}, err
}

// do runs the steps, and adds the section.
func (r *run) do(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	r.section.finish()
	r.view.Report().Sections = append(r.view.Report().Sections, &Deletion{r.section})
	return nil
}

// run is one deletion.
type run struct {
	ctx     context.Context
	view    *transform.View
	types   *inspect.Types
	section *Removed

	gone        map[objects.UID]bool // of deleted objects
	spaces      map[place]*left      // deleted namespaces
	definitions map[folder]*left     // deleted CustomResourceDefinitions
	admins      []string             // keys of deleted bindings of cluster-admin
	claims      map[objects.UID]bool // deleted PersistentVolumeClaims
	services    []*inspect.Object
	freed       *objects.Freed
	deleted     map[string]bool // keys
	secrets     int             // number of deleted Secrets
	stranded    []string        // UIDs of Pods on deleted Nodes
	scrub       bool            // remove all records of the deleted objects, of any revision
	storage     *finding.Code   // for volumes whose storage is destroyed after the restore
}

type (
	place  struct{ prefix, namespace string }
	folder struct {
		prefix   string
		resource schema.GroupResource
	}
	left struct {
		key     string // key of the namespace or definition
		objects int    // objects not chosen by the command line
	}
)

// deleteChosen deletes the chosen objects or, with --keep, all others.
func (r *run) deleteChosen(d *Delete) error {
	kept := 0
	err := stream.Each(d.choice.Candidates(r.ctx, r.view, r.types, false), func(one objects.Candidate) error {
		if one.Chosen == d.keep {
			kept++
			return nil
		}
		if d.keep && isNeeded(one.Parsed) {
			return nil
		}
		return r.deleteOne(one.Entry, one.Parsed, true)
	})
	if d.keep && kept == 0 && err == nil {
		r.view.Raise("", codeNothingKept.Because("nothing is chosen to be kept"))
	}
	return err
}

// deleteOne deletes an object and records data for later steps.
func (r *run) deleteOne(e *transform.Entry, key keys.Key, chosen bool) error {
	meta, err := e.Meta()
	if e.Undecryptable != nil {
		err = e.Undecryptable
	}
	switch {
	case err != nil:
		r.view.Raise(string(e.Key), codeUnread.Because("%v", err))
	case meta.UID != "":
		r.gone[objects.ToUID(meta.UID)] = true
	}
	if len(meta.Finalizers) > 0 {
		r.view.Raise(string(e.Key), transform.CodeFinalizers.Because("its finalizers do not run: %s",
			finding.List(meta.Finalizers)))
	}
	if chosen && isNeeded(key) {
		r.view.Raise(string(e.Key), codeNeeded.Because("a cluster cannot live without the namespace %s", key.Name))
	}
	if chosen {
		if who := maker(key, meta); who != "" {
			r.view.Raise(string(e.Key), codeReturns.Because("%s makes it again", who))
		}
	}
	r.note(e, key)
	r.freed.Deleted(e)
	return r.stage(e, key, chosen)
}

// stage deletes a record.
func (r *run) stage(e *transform.Entry, key keys.Key, chosen bool) error {
	r.section.add(e.Key, key, chosen)
	r.deleted[string(e.Key)] = true
	if key.Resource == (schema.GroupResource{Resource: "secrets"}) {
		r.secrets++
	}
	return r.view.Delete(r.ctx, e.Key)
}

// clean removes all records of the deleted objects, or names what remains of deleted Secrets.
func (r *run) clean() error {
	switch {
	case r.scrub && len(r.deleted) > 0:
		r.view.Make(transform.Output{Scrub: func(key []byte) bool { return r.deleted[string(key)] }})
	case r.secrets > 0:
		r.view.Report().AddStep("OUT still holds the values of %s, in older records and perhaps in free pages; "+
			"--scrub removes them", phrase.Count(r.secrets, "deleted Secret"))
	}
	return nil
}

// note records the consequences of deleting an object of a special type.
func (r *run) note(e *transform.Entry, key keys.Key) {
	switch key.Resource {
	case schema.GroupResource{Resource: "namespaces"}:
		r.spaces[place{key.Prefix, key.Name}] = &left{key: string(e.Key)}
	case keys.DefinitionType():
		r.definitions[folder{key.Prefix, schema.ParseGroupResource(key.Name)}] = &left{key: string(e.Key)}
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		if meta, err := e.Meta(); err == nil {
			r.claims[objects.ToUID(meta.UID)] = true
		}
	case schema.GroupResource{Resource: "services"}:
		r.services = append(r.services, inspect.NewObject(r.types.Of(key.Resource), e))
	case bindings():
		if isAdmin(inspect.NewObject(r.types.Of(key.Resource), e)) {
			r.admins = append(r.admins, string(e.Key))
		}
	}
}

// reportUnparsed reports an unparsable key with the name of a deleted namespace.
func (r *run) reportUnparsed(e *transform.Entry, why error) {
	layout, is := e.Layout().(keys.Kubernetes)
	if !is {
		return
	}
	parts := strings.Split(strings.TrimPrefix(string(e.Key), layout.Prefix+"/"), "/")
	for _, part := range parts[1:] { // after the resource
		if r.spaces[place{layout.Prefix, part}] != nil {
			r.view.Raise(string(e.Key), codeUnparsed.Because("the namespace %s is deleted, and this key has "+
				"its name: %v", part, why))
			return
		}
	}
}

// deleteContents deletes the contents of deleted namespaces and the objects of deleted definitions.
func (r *run) deleteContents() error {
	if len(r.spaces) == 0 && len(r.definitions) == 0 {
		return nil
	}
	err := stream.Each(r.view.Live(r.ctx, nil), func(e *transform.Entry) error {
		key, err := e.ParseKey()
		if err != nil {
			r.reportUnparsed(e, err)
			return nil
		}
		definition := r.definitions[folder{key.Prefix, key.Resource}]
		switch {
		case r.spaces[place{key.Prefix, key.Namespace}] != nil:
			return r.deleteOne(e, key, false)
		case definition != nil:
			definition.objects++
			return r.deleteOne(e, key, false)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range nonempty(r.definitions) {
		r.view.Raise(d.key, codeObjectsLeft.Because("%d of its objects are not chosen: on a server they are "+
			"deleted with it", d.objects))
	}
	return nil
}

// nonempty returns the namespaces or definitions with objects that are not chosen.
func nonempty[K comparable](all map[K]*left) []*left {
	some := slices.DeleteFunc(slices.Collect(maps.Values(all)), func(l *left) bool { return l.objects == 0 })
	slices.SortFunc(some, func(a, b *left) int { return strings.Compare(a.key, b.key) })
	return some
}

// deleteAddresses deletes the objects that an API server deletes with a Service: its Endpoints and
// the IPAddress objects of its cluster IPs.
func (r *run) deleteAddresses() error {
	for _, service := range r.services {
		storage := machines.Storage{Source: r.view, Prefix: service.Parsed.Prefix}
		gone, err := storage.IPAddresses(r.ctx, service.Parsed, service.Content)
		if err != nil {
			return err
		}
		endpoints, err := storage.Get(r.ctx, "endpoints", service.Parsed.Namespace, service.Parsed.Name)
		if err != nil {
			return err
		}
		if endpoints != nil {
			gone = append([]*transform.Entry{endpoints}, gone...)
		}
		for _, e := range gone {
			key, err := e.ParseKey()
			if err != nil {
				return err
			}
			if err := r.deleteOne(e, key, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNeeded reports whether the object is a namespace required by every cluster.
func isNeeded(key keys.Key) bool {
	needed := []string{"default", "kube-system", "kube-public", "kube-node-lease"}
	return key.Resource == schema.GroupResource{Resource: "namespaces"} && slices.Contains(needed, key.Name)
}

const (
	apiServer  = "kube-apiserver"
	controller = "kube-controller-manager"
)

// maker returns the component that recreates a deleted object, or "". Sources: pkg/controlplane and
// pkg/registry/{rbac,scheduling,flowcontrol}/rest of kube-apiserver, and the controllers
// rootcacertpublisher and serviceaccount.
func maker(key keys.Key, meta encoding.Meta) string {
	if meta.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return "the kubelet of its node, of a static pod,"
	}
	for _, mark := range []map[string]string{meta.Labels, meta.Annotations} {
		for _, own := range [][2]string{
			{"kubernetes.io/bootstrapping", "rbac-defaults"}, {"kube-aggregator.kubernetes.io/automanaged", "onstart"},
			{"apf.kubernetes.io/autoupdate-spec", "true"}, {"apiserver.kubernetes.io/identity", "kube-apiserver"},
		} {
			if len(mark) > 0 && mark[own[0]] == own[1] {
				return apiServer
			}
		}
	}
	switch at := key.Namespace + "/" + key.Name; key.Resource.Resource {
	case "services", "endpoints", "endpointslices":
		return of(at == "default/kubernetes", apiServer)
	case "servicecidrs", "masterleases":
		return of(key.Name == "kubernetes" || key.Resource.Resource == "masterleases", apiServer)
	case "namespaces":
		return of(isNeeded(key), apiServer)
	case "priorityclasses":
		return of(strings.HasPrefix(key.Name, "system-"), apiServer)
	case "configmaps":
		return of(key.Name == "kube-root-ca.crt", controller) + of(slices.Contains(ownMaps(), at), apiServer)
	case "serviceaccounts":
		return of(key.Name == "default", controller)
	}
	return ""
}

// ownMaps returns the ConfigMaps created by an API server.
func ownMaps() []string {
	return []string{"kube-system/extension-apiserver-authentication",
		"kube-system/kube-apiserver-legacy-service-account-token-tracking"}
}

func of(is bool, who string) string {
	if is {
		return who
	}
	return ""
}

func bindings() schema.GroupResource {
	return schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}
}

// isAdmin reports whether a ClusterRoleBinding grants cluster-admin to any subject.
func isAdmin(o *inspect.Object) bool {
	role, _, _ := unstructured.NestedString(o.Content, "roleRef", "name")
	subjects, _, _ := unstructured.NestedSlice(o.Content, "subjects")
	return role == "cluster-admin" && len(subjects) > 0
}

// checkAdmins reports the deletion of the last binding of cluster-admin.
func (r *run) checkAdmins() error {
	if len(r.admins) == 0 {
		return nil
	}
	for o, err := range r.view.Objects(r.ctx, r.types.Of(bindings()), inspect.Selection{}) {
		if err != nil || isAdmin(o) {
			return err
		}
	}
	for _, key := range r.admins {
		r.view.Raise(key, codeLastAdmin.Because("no other ClusterRoleBinding gives anybody the ClusterRole "+
			"cluster-admin"))
	}
	return nil
}

// checkClaims reports PersistentVolumes whose storage is destroyed after the deletion of their
// claims.
func (r *run) checkClaims() error {
	volumes := r.types.Of(schema.GroupResource{Resource: "persistentvolumes"})
	if len(r.claims) == 0 {
		return nil
	}
	return stream.Each(r.view.Objects(r.ctx, volumes, inspect.Selection{}), func(o *inspect.Object) error {
		volume, err := native.As[corev1.PersistentVolume](o.ParseValue())
		claim := volume.Spec.ClaimRef
		if err == nil && claim != nil && claim.UID != "" && machines.Destroyed(&volume) &&
			r.claims[objects.ToUID(string(claim.UID))] {
			r.view.Raise(string(o.Key), r.storage.Because("its claim %s/%s is deleted, and its reclaim policy is %s",
				claim.Namespace, claim.Name, volume.Spec.PersistentVolumeReclaimPolicy))
		}
		return nil
	})
}

func (r *run) strand() (err error) {
	r.stranded, err = r.freed.Stranded(r.ctx)
	return err
}
