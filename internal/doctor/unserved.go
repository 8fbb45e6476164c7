package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Codes about names of built-in kinds in objects.
var (
	codeUnservedAPI  = finding.Lookup("unserved-api")
	codeUnservedName = finding.Lookup("unserved-name")
	codeHelmRelease  = finding.Lookup("helm-release")
)

// unserved reports whether the API server to restore with cannot serve a built-in kind. Without the
// release of that server, no known release must serve the kind.
func (d *doctor) unserved(gvk gvr.GroupVersionKind) bool {
	is, known := d.notServed[gvk]
	if !known {
		_, last := native.Serving(gvk)
		is = last > 0 && !d.served(func(minor int) bool { return native.ServedBy(gvk, minor) })
		d.notServed[gvk] = is
	}
	return is && !d.aggregated[gvk.GroupVersion()]
}

// served reports whether by is true for the release to restore with, or else for any release.
func (d *doctor) served(by func(minor int) bool) bool {
	if d.options.Kubernetes > 0 {
		return by(d.options.Kubernetes)
	}
	for minor := native.OldestRelease; minor <= native.LinkedRelease; minor++ {
		if by(minor) {
			return true
		}
	}
	return false
}

// replacement returns the kind that is served instead of an unserved one; false for none.
func (d *doctor) replacement(gvk gvr.GroupVersionKind) (gvr.GroupVersionKind, bool) {
	return native.Replacement(gvk, cmp.Or(d.options.Kubernetes, native.LinkedRelease))
}

// addName counts an object of a resource that has the name of an unserved kind, or of a group with
// only such kinds, in a place.
func (d *doctor) addName(e *inspect.Entry, code *finding.Code, resource, place, name string, gvk gvr.GroupVersionKind) {
	d.groups.add(group{code, d.nameSubject(resource, place, name, gvk)}, e.Key)
}

func (d *doctor) nameSubject(resource, place, name string, gvk gvr.GroupVersionKind) string {
	by := fmt.Sprintf("which no release since Kubernetes 1.%d serves", native.OldestRelease)
	if to := d.options.Kubernetes; to > 0 {
		by = fmt.Sprintf("which Kubernetes 1.%d does not serve", to)
	}
	if to, is := d.replacement(gvk); is {
		by += "; " + to.GroupVersion().String() + " replaces it"
	}
	return fmt.Sprintf("%s: %s %s, %s", resource, place, name, by)
}

// addMentions counts an object whose metadata name unserved versions of its kind.
func (d *doctor) addMentions(p *place, e *inspect.Entry, l *look) {
	const inApplied, inManaged = "the annotation " + corev1.LastAppliedConfigAnnotation + " names",
		"metadata.managedFields names"
	if l.applied != "" {
		d.addMention(p, e, inApplied, []byte(l.applied))
	}
	for _, version := range l.managed {
		d.addMention(p, e, inManaged, version)
	}
}

// mention is a name in the metadata of objects.
type mention struct{ place, apiVersion string }

func (d *doctor) addMention(p *place, e *inspect.Entry, place string, apiVersion []byte) {
	subject, known := p.mentions[mention{place, string(apiVersion)}]
	if !known {
		if t := d.types.Of(p.resource); t != nil {
			gvk := gvr.FromAPIVersionAndKind(string(apiVersion), t.Kind)
			if d.unserved(gvk) {
				subject = d.nameSubject(p.name, place, string(apiVersion), gvk)
			}
		}
		if p.mentions == nil {
			p.mentions = map[mention]string{}
		}
		p.mentions[mention{place, string(apiVersion)}] = subject
	}
	if subject != "" {
		d.groups.add(group{codeUnservedName, subject}, e.Key)
	}
}

// appliedObject decodes the annotation of "kubectl apply".
var appliedObject = encoding.FieldsOf[struct {
	APIVersion string `json:"apiVersion"`
}]()

// appliedVersion returns the apiVersion last applied with kubectl, "" for none. meta is nil for an
// object with a glance.
func appliedVersion(e *inspect.Entry, g *encoding.Glance, meta *encoding.Meta) string {
	const name = corev1.LastAppliedConfigAnnotation
	var text []byte
	if meta == nil {
		i := slices.IndexFunc(g.Annotations, func(a encoding.Annotation) bool { return string(a.Name) == name })
		if i < 0 {
			return ""
		}
		if text = g.Annotations[i].Value; text == nil { // escaped
			decoded, _ := encoding.ReadMeta(e.Value) // empty for an error, which is reported as undecodable
			meta = &decoded
		}
	}
	if meta != nil {
		text = []byte(meta.Annotations[name])
	}
	if len(text) == 0 {
		return ""
	}
	content, err := appliedObject.Decode(text)
	if err != nil {
		return ""
	}
	return content.APIVersion
}

// checkUnserved reports names of unserved kinds in the specs of objects.
func checkUnserved(d *doctor) error {
	for _, s := range d.layouts.Storages() {
		for _, check := range []func(*doctor, machines.Storage) error{checkTargets, checkRules, checkRoles, checkHelm} {
			if err := check(d, d.storage(s.Prefix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTargets reports targets of HorizontalPodAutoscalers. Their controller takes any version of
// the group and kind (pkg/controller/podautoscaler).
func checkTargets(d *doctor, s machines.Storage) error {
	const resource = "horizontalpodautoscalers.autoscaling"
	return machines.Each(d.ctx, s, resource, "",
		func(e *inspect.Entry, hpa *autoscalingv1.HorizontalPodAutoscaler) error {
			of := hpa.Spec.ScaleTargetRef
			gvk := gvr.FromAPIVersionAndKind(of.APIVersion, of.Kind)
			anyVersion := func(minor int) bool {
				_, is := native.Replacement(gvk.GroupKind().WithVersion(""), minor)
				return is
			}
			if d.unserved(gvk) && !d.served(anyVersion) {
				d.addName(e, codeUnservedAPI, resource, "spec.scaleTargetRef names", of.APIVersion+" "+of.Kind, gvk)
			}
			return nil
		})
}

// matching has the rules of webhooks or of an admission policy.
type matching struct {
	Webhooks []struct {
		Name  string                           `json:"name"`
		Rules []admissionv1.RuleWithOperations `json:"rules"`
	} `json:"webhooks"`
	Spec struct {
		MatchConstraints struct {
			ResourceRules []admissionv1.RuleWithOperations `json:"resourceRules"`
		} `json:"matchConstraints"`
	} `json:"spec"`
}

// checkRules reports rules of webhooks and admission policies that match no request any more.
func checkRules(d *doctor, s machines.Storage) error {
	for _, resource := range []string{
		validating, mutating, "validatingadmissionpolicies.admissionregistration.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io",
	} {
		err := machines.Each(d.ctx, s, resource, "", func(e *inspect.Entry, m *matching) error {
			d.addRules(e, resource, "a rule of spec.matchConstraints", m.Spec.MatchConstraints.ResourceRules)
			for _, hook := range m.Webhooks {
				d.addRules(e, resource, "a rule of webhook "+hook.Name, hook.Rules)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addRules counts an object with a rule for only unserved versions, if no other rule is for the
// version that replaces them.
func (d *doctor) addRules(e *inspect.Entry, resource, place string, rules []admissionv1.RuleWithOperations) {
	has := func(list []string, want string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, want)
	}
	for _, r := range rules {
		for _, gvk := range d.unmatched(r.Rule) {
			to, is := d.replacement(gvk)
			covered := slices.ContainsFunc(rules, func(other admissionv1.RuleWithOperations) bool {
				return d.unmatched(other.Rule) == nil && has(other.APIGroups, to.Group) &&
					slices.ContainsFunc(r.Resources, func(of string) bool { return has(other.Resources, of) })
			})
			if is && !covered {
				d.addName(e, codeUnservedAPI, resource, place+" names only",
					gvk.GroupVersion().String()+" "+strings.Join(r.Resources, ","), gvk)
				break
			}
		}
	}
}

// unmatched returns the kinds of a rule if it names only unserved ones; nil for any other rule.
func (d *doctor) unmatched(r admissionv1.Rule) (kinds []gvr.GroupVersionKind) {
	for _, name := range r.APIGroups {
		for _, resource := range r.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			t := d.types.Of(gvr.GroupResource{Group: name, Resource: resource})
			for _, version := range r.APIVersions {
				if t == nil || !t.Builtin {
					return nil
				}
				gvk := gvr.GroupVersionKind{Group: name, Version: version, Kind: t.Kind}
				if !d.unserved(gvk) {
					return nil
				}
				kinds = append(kinds, gvk)
			}
		}
	}
	return kinds
}

// checkRoles reports rules of roles that name only unserved groups. API servers write their own
// roles, which name such groups.
func checkRoles(d *doctor, s machines.Storage) error {
	for _, resource := range []string{"clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io"} {
		err := machines.Each(d.ctx, s, resource, "", func(e *inspect.Entry, role *rbacv1.ClusterRole) error {
			if role.Labels["kubernetes.io/bootstrapping"] != "" {
				return nil
			}
			for _, r := range role.Rules {
				if len(r.APIGroups) > 0 && !slices.ContainsFunc(r.APIGroups, d.servedGroup) {
					d.addName(e, codeUnservedName, resource, "a rule names only",
						"the group "+strings.Join(r.APIGroups, ", "), gvr.GroupVersionKind{})
					break
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkHelm reports Helm releases whose manifests name unserved versions.
func checkHelm(d *doctor, s machines.Storage) error {
	for _, resource := range []string{"secrets", "configmaps"} {
		// one pass over all namespaces: a pass for each reads the whole file as often
		err := stream.Each(d.reader.Raw(d.ctx, s.Dir(resource, "")), func(e inspect.Entry) error {
			key, err := e.ParseKey()
			if _, there := d.namespaces[space{s.Prefix, key.Namespace}]; err != nil || !there ||
				!strings.HasPrefix(key.Name, objects.HelmPrefix) {
				return nil // an unparsed key is reported
			}
			if err := d.reader.Decrypt(d.ctx, &e); err != nil {
				return err
			}
			return d.addHelm(&e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addHelm reports the unserved versions in the manifest of a Helm release.
func (d *doctor) addHelm(e *inspect.Entry) error {
	if e.Undecryptable != nil || e.Check() != nil {
		return nil // reported
	}
	v, _ := e.ParseValue() // did not fail before
	release, err := objects.ReadHelm(v)
	if err != nil {
		d.raise(e.Key, codeHelmRelease, "the versions that this Helm release names cannot be read: %v", err)
	}
	if release == nil {
		return nil
	}
	var names []string
	for doc := range objects.HelmDocuments(release.Manifest) {
		if d.unserved(gvr.FromAPIVersionAndKind(doc.APIVersion, doc.Kind)) {
			names = append(names, doc.APIVersion+" "+doc.Kind)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		d.raise(e.Key, codeHelmRelease, "Helm release %s names versions that are not served: %s", release.Name,
			finding.List(names))
	}
	return nil
}

// servedGroup reports whether a kind of a group may be served.
func (d *doctor) servedGroup(name string) bool {
	return d.served(func(minor int) bool {
		is, known := native.GroupServedBy(name, minor)
		return is || !known
	})
}
