package keys

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Detect finds the storage prefixes of a file by all of its keys, in one pass. Those that a person named take part, and come
// first. See Detector for keys that can't be had as a sequence of their own.
func Detect(all iter.Seq[[]byte], named ...string) Layouts {
	d := NewDetector(named...)
	for key := range all {
		d.Add(key)
	}
	return d.Layouts()
}

// Detector finds the storage prefixes of a file and their flavours.
//
// What only one kind of server writes proves both: a CustomResourceDefinition, an APIService, the definitions of kcp's own
// types. A namespace that every cluster has, or the record of a logical cluster, shows them too, but not where the same key
// is one of an object below a shorter prefix: a tenant chooses the names of its objects. Where a prefix is named, or one
// that servers have by default, and nothing shows its flavour, the layout that takes most of the keys below it does; so that
// the etcd of Events alone is read.
type Detector struct {
	found     map[string]*evidence
	order     []string
	named     []string
	looks     []*look
	openshift bool
}

// evidence is what speaks for a prefix.
type evidence struct {
	proof Flavour              // "" for none
	signs map[Flavour][]string // keys that show a flavour where they are of no shorter prefix; a few of each
}

// look counts which layouts take the keys below a prefix.
type look struct {
	prefix  []byte    // with its slash
	allowed []Flavour // nil for any
	seen    int
	taken   [4]int // as looked
}

const (
	mostSigns  = 8    // kept of a prefix and flavour
	mostLooked = 1000 // keys below a prefix
	mostPrefix = 256  // bytes of a prefix that nobody named: what a hostile key holds is no longer work than its own length
)

// looked are the flavours a look tells apart. Of two that take as many keys it is the first: what a shard holds for a
// namespaced type may be read as a cache's.
func looked() [4]Flavour {
	return [4]Flavour{FlavourKubernetes, FlavourOpenShift, FlavourKCPShard, FlavourKCPCache}
}

// defaults are what servers store under unless they are told otherwise. Only those servers' keys show one of them.
func defaults() []defaultPrefix {
	return []defaultPrefix{
		{"/registry", []Flavour{FlavourKubernetes, FlavourKCPShard}},
		{"/kubernetes.io", []Flavour{FlavourKubernetes}},
		{"/openshift.io", []Flavour{FlavourOpenShift}},
		{"/cache", []Flavour{FlavourKCPCache}},
	}
}

type defaultPrefix struct {
	prefix   string
	flavours []Flavour
}

// NewDetector makes a Detector that has seen no key.
func NewDetector(named ...string) *Detector {
	d := &Detector{found: map[string]*evidence{}, named: slices.Clone(named)}
	for _, prefix := range named {
		d.looks = append(d.looks, &look{prefix: []byte(prefix + "/")})
	}
	for _, p := range defaults() {
		if !slices.Contains(named, p.prefix) {
			d.looks = append(d.looks, &look{prefix: []byte(p.prefix + "/"), allowed: p.flavours})
		}
	}
	// the longest first: a key counts for one
	slices.SortStableFunc(d.looks, func(a, b *look) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return d
}

// Add shows the detector one more key. It keeps nothing of it but a prefix it may be the first to show.
func (d *Detector) Add(key []byte) {
	if prefix, flavour, proof, ok := sign(key); ok && len(prefix) <= mostPrefix {
		d.note(prefix, flavour, proof, key)
	}
	for _, l := range d.looks {
		if bytes.HasPrefix(key, l.prefix) {
			l.add(key)
			break
		}
	}
}

// sign tells which prefix a key gives away, of what flavour, and whether that is proof. Most keys end in the first switch.
func sign(key []byte) (prefix string, flavour Flavour, proof, ok bool) {
	const crds = "/apiextensions.k8s.io/customresourcedefinitions"
	slash := bytes.LastIndexByte(key, '/')
	if slash < 0 {
		return "", "", false, false
	}
	dir, name := key[:slash], key[slash+1:]
	has := func(suffix string) bool {
		if !bytes.HasSuffix(dir, []byte(suffix)) {
			return false
		}
		prefix = string(dir[:len(dir)-len(suffix)])
		return true
	}
	switch {
	case has(crds + "/system:cache:server/system:system-crds"):
		flavour, proof = FlavourKCPCache, true
	case has(crds + "/system:system-crds"), has(crds + "/system:bound-crds"):
		flavour, proof = FlavourKCPShard, true
	case string(name) == "cluster":
		prefix, flavour, ok = logicalCluster(string(dir))
		if !ok {
			return "", "", false, false
		}
	case has(crds), has("/apiregistration.k8s.io/apiservices"), has("/namespaces"):
		proof = !has("/namespaces")
		prefix, ok = DetectPrefix(key)
		return prefix, FlavourKubernetes, proof, ok
	default:
		return "", "", false, false
	}
	if !isPrefix(prefix) {
		return "", "", false, false
	}
	_, err := flavour.Layout(prefix).Parse(key)
	return prefix, flavour, proof, err == nil
}

// logicalCluster tells which prefix the key of a LogicalCluster gives away; dir is the key without its last segment. A
// shard has the name of the logical cluster there, a cache that of a shard before it.
func logicalCluster(dir string) (prefix string, flavour Flavour, ok bool) {
	const types = "/core.kcp.io/logicalclusters/" + customResources
	dir, _, _ = cutLast(dir)
	if prefix, ok = strings.CutSuffix(dir, types); ok {
		return prefix, FlavourKCPShard, true
	}
	dir, _, _ = cutLast(dir)
	prefix, ok = strings.CutSuffix(dir, types)
	return prefix, FlavourKCPCache, ok
}

func (d *Detector) note(prefix string, flavour Flavour, proof bool, key []byte) {
	e := d.found[prefix]
	if e == nil {
		e = &evidence{}
		d.found[prefix] = e
		d.order = append(d.order, prefix)
	}
	if flavour == FlavourKubernetes && bytes.HasSuffix(key, []byte("/clusterversions.config.openshift.io")) {
		d.openshift = true // the type every OpenShift 4 has
	}
	switch {
	case proof: // where there are two kinds, kcp's is the one nobody can make up
		e.proof, e.signs = over(e.proof, flavour), nil
	case e.proof == "" && len(e.signs[flavour]) < mostSigns:
		if e.signs == nil {
			e.signs = map[Flavour][]string{}
		}
		e.signs[flavour] = append(e.signs[flavour], string(key))
	}
}

// add counts one key.
func (l *look) add(key []byte) {
	if l.seen >= mostLooked {
		return
	}
	l.seen++
	prefix := string(l.prefix[:len(l.prefix)-1])
	for i, f := range looked() {
		if (l.allowed == nil || slices.Contains(l.allowed, f)) && takes(f.Layout(prefix), key) {
			l.taken[i]++
		}
	}
}

// takes tells whether a key is of a resource that the layout knows of, and no other could be meant.
func takes(layout Layout, key []byte) bool {
	k, err := layout.Parse(key)
	if err != nil {
		return false
	}
	switch layout.(type) {
	case Kubernetes:
		return strings.Contains(k.Resource.Group, ".") || IsBuiltin(k.Resource)
	case OpenShift:
		return k.Resource.Group != ""
	}
	return true
}

// flavour is what most of the keys are; "" where nothing says so.
func (l *look) flavour() Flavour {
	best := 0
	for i, n := range l.taken {
		if n > l.taken[best] {
			best = i
		}
	}
	if l.taken[best]*2 <= l.seen {
		return ""
	}
	return looked()[best]
}

// Layouts is what the keys have shown.
func (d *Detector) Layouts() Layouts {
	flavours := d.proved()
	d.weigh(flavours)
	for _, l := range d.looks {
		prefix := string(l.prefix[:len(l.prefix)-1])
		if flavours[prefix] != "" && flavours[prefix] != FlavourUnknown {
			continue
		}
		if f := l.flavour(); f != "" {
			flavours[prefix] = f
		}
	}
	var out []Storage
	prefixes := slices.Concat(d.named, d.order)
	for _, p := range defaults() {
		prefixes = append(prefixes, p.prefix)
	}
	for _, prefix := range prefixes {
		if f := flavours[prefix]; f != "" {
			out = append(out, Storage{Prefix: prefix, Flavour: f})
		}
	}
	l := NewLayouts(out...)
	l.openshift = l.openshift || d.openshift
	return l
}

// proved are the prefixes that are sure, those that were named among them.
func (d *Detector) proved() map[string]Flavour {
	flavours := map[string]Flavour{}
	for _, prefix := range d.named {
		flavours[prefix] = FlavourUnknown
	}
	for prefix, e := range d.found {
		if e.proof != "" {
			flavours[prefix] = e.proof
		}
	}
	return flavours
}

// weigh adds the prefixes that only signs speak for, the shortest first: a sign that is an object of a prefix already known
// counts for nothing.
func (d *Detector) weigh(flavours map[string]Flavour) {
	prefixes := slices.SortedFunc(maps.Keys(d.found), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, prefix := range prefixes {
		most := 0
		for _, f := range looked() {
			n := 0
			for _, key := range d.found[prefix].signs[f] {
				if !isObject(flavours, prefix, key) {
					n++
				}
			}
			if n > most && (flavours[prefix] == "" || flavours[prefix] == FlavourUnknown || most > 0) {
				flavours[prefix], most = f, n
			}
		}
	}
}

// isObject tells whether a key is that of an object below one of the prefixes shorter than prefix.
func isObject(flavours map[string]Flavour, prefix, key string) bool {
	for at := strings.LastIndexByte(prefix, '/'); at >= 0; at = strings.LastIndexByte(prefix[:at], '/') {
		f := flavours[prefix[:at]]
		if f != "" && takes(f.Layout(prefix[:at]), []byte(key)) {
			return true
		}
	}
	return false
}
