package tries

import (
	"cmp"
	"slices"
	"sync"

	"github.com/etcdshift/etcdshift/finding"
)

// Failure is one request that the API server refused.
type Failure struct {
	*finding.Finding // with a reason that names the object, version and verb; without a key

	Resource  string // such as "widgets.example.com"
	Namespace string // "" for none
	Name      string // "" if the resource as a whole fails
	Version   string // of the request
	Verb      string // "list", "get", "update" or "apply"
}

func compareFailures(a, b Failure) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Version, b.Version), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Reason, b.Reason))
}

// failures keeps the first failures of each code, by compareFailures, and counts all.
type failures struct {
	sync.Mutex
	kept   map[*finding.Code][]Failure
	counts map[*finding.Code]int
}

// add keeps a failure. Twice as many as needed are collected before they are sorted and cut.
func (f *failures) add(failure Failure) {
	f.Lock()
	defer f.Unlock()
	if f.kept == nil {
		f.kept, f.counts = map[*finding.Code][]Failure{}, map[*finding.Code]int{}
	}
	f.counts[failure.Code]++
	kept := append(f.kept[failure.Code], failure)
	if len(kept) >= 2*finding.MaxListed {
		kept = first(kept)
	}
	f.kept[failure.Code] = kept
}

// first sorts failures and cuts the list.
func first(of []Failure) []Failure {
	slices.SortFunc(of, compareFailures)
	clear(of[min(len(of), finding.MaxListed):])
	return of[:min(len(of), finding.MaxListed)]
}

func (f *failures) all() (all []Failure, counts map[*finding.Code]int) {
	f.Lock()
	defer f.Unlock()
	for _, kept := range f.kept {
		all = append(all, first(kept)...)
	}
	slices.SortFunc(all, compareFailures)
	return all, f.counts
}
