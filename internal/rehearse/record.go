package rehearse

import (
	"cmp"
	"slices"
	"sync"

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
func (r *runner) record(k *kind, code *finding.Code, of objectName, version, verb string, refusal *apierrors.StatusError) {
	why := reason(refusal, k.expressive)
	k.Lock()
	defer k.Unlock()
	if !r.says(k, refusal) {
		if k.NotChecked == "" || why < k.NotChecked {
			k.NotChecked = why
		}
		return
	}
	k.Failed++
	if of.Name == "" && apierrors.IsNotFound(refusal) && k.status != "" {
		why += " (" + k.status + ")"
	}
	r.failures.add(refused{
		Finding: code.Because("%s: %s at %s: %s", subject(k.Resource, of), verb, version, why), Resource: k.Resource, objectName: of, Version: version,
	})
}

// subject names an object, or without a name the resource.
func subject(resource string, of objectName) string {
	switch {
	case of.Name == "":
		return resource
	case of.Namespace == "":
		return resource + " " + of.Name
	}
	return resource + " " + of.Namespace + "/" + of.Name
}

// refused is one request that the API server refused.
type refused struct {
	*finding.Finding // with a reason that names the object, version and verb; without a key

	Resource   string // such as "widgets.example.com"
	objectName        // without a name if the resource as a whole fails
	Version    string // of the request
}

func compareFailures(a, b refused) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Version, b.Version), cmp.Compare(a.Reason, b.Reason))
}

// failures keeps the first failures of each code, by compareFailures, and counts all.
type failures struct {
	sync.Mutex
	kept   map[*finding.Code][]refused
	counts map[*finding.Code]int
}

// add keeps a failure. Twice as many as needed are collected before they are sorted and cut.
func (f *failures) add(failure refused) {
	f.Lock()
	defer f.Unlock()
	if f.kept == nil {
		f.kept, f.counts = map[*finding.Code][]refused{}, map[*finding.Code]int{}
	}
	f.counts[failure.Code]++
	kept := append(f.kept[failure.Code], failure)
	if len(kept) >= 2*finding.MaxListed {
		kept = first(kept)
	}
	f.kept[failure.Code] = kept
}

// first sorts failures and cuts the list.
func first(of []refused) []refused {
	slices.SortFunc(of, compareFailures)
	clear(of[min(len(of), finding.MaxListed):])
	return of[:min(len(of), finding.MaxListed)]
}

func (f *failures) all() (all []refused, counts map[*finding.Code]int) {
	f.Lock()
	defer f.Unlock()
	for _, kept := range f.kept {
		all = append(all, first(kept)...)
	}
	slices.SortFunc(all, compareFailures)
	return all, f.counts
}
