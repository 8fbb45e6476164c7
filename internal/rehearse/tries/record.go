package tries

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcdshift/etcdshift/finding"
)

// listed counts the objects of a list at a version.
func (k *kind) listed(version string, objects int, complete bool) {
	k.Lock()
	defer k.Unlock()
	k.Objects = max(k.Objects, objects)
	if complete {
		k.Listed = append(k.Listed, version)
	}
}

// record counts a refusal, and keeps it as a failure if it was checked.
func (r *runner) record(k *kind, code *finding.Code, of Name, version, verb string, refusal *apierrors.StatusError) {
	why := reason(refusal, k.expressive)
	k.Lock()
	defer k.Unlock()
	switch {
	case !r.says(k, refusal):
		k.Unchecked++
		if k.NotChecked == "" || why < k.NotChecked {
			k.NotChecked = why
		}
		return
	case code == CodeUpdate:
		k.Updates++
	case code == CodeApply:
		k.Applies++
	default:
		k.Unread++
	}
	if of.Name == "" && apierrors.IsNotFound(refusal) && k.status != "" {
		why += " (" + k.status + ")"
	}
	r.failures.add(Failure{Finding: code.Because("%s: %s at %s: %s", k.subject(of), verb, version, why), Resource: k.Resource,
		Namespace: of.Namespace, Name: of.Name, Version: version, Verb: verb})
}

// subject names an object, or the resource.
func (k *kind) subject(of Name) string {
	switch {
	case of.Name == "":
		return k.Resource
	case of.Namespace == "":
		return k.Resource + " " + of.Name
	}
	return k.Resource + " " + of.Namespace + "/" + of.Name
}
