package keys

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Detector finds the storage prefixes of a file, and their flavours, from all keys of the file.
//
// Some keys are proof, because only one kind of server writes them: a CustomResourceDefinition, an
// APIService, the definitions of kcp's own types. Other keys are signs: a namespace of every
// cluster, or a LogicalCluster. Tenants choose the names of their objects, so a sign does not count
// if it is an object below a shorter prefix. A named or default prefix without proof or sign gets
// the layout that parses most of its keys; so an etcd of Events alone can be read.
type Detector struct {
	found     map[string]*evidence
	order     []string
	named     []string
	counts    []*prefixCount
	openshift bool
}

// evidence holds the proof or the signs of a prefix.
type evidence struct {
	proof Flavour              // "" without proof
	signs map[Flavour][]string // the first keys of each flavour
}

// prefixCount counts, for each layout, the keys below a prefix that the layout parses.
type prefixCount struct {
	prefix  string
	dir     []byte    // the prefix with a trailing slash
	allowed []Flavour // nil for all
	seen    int
	parsed  [4]int // in the order of countedFlavours
}

const (
	mostSigns   = 8    // kept for each prefix and flavour
	mostCounted = 1000 // keys below each prefix
	mostPrefix  = 256  // bytes of a prefix found by its keys; bounds the work on a hostile key
)

// countedFlavours lists the flavours of a prefixCount. In a tie the first wins: keys of a shard may
// also parse as keys of a cache.
func countedFlavours() [4]Flavour {
	return [4]Flavour{FlavourKubernetes, FlavourOpenShift, FlavourKCPShard, FlavourKCPCache}
}

// defaults lists the default prefixes of servers with the possible flavours of each.
func defaults() []*prefixCount {
	return []*prefixCount{
		newPrefixCount("/registry", FlavourKubernetes, FlavourKCPShard),
		newPrefixCount("/kubernetes.io", FlavourKubernetes),
		newPrefixCount("/openshift.io", FlavourOpenShift), newPrefixCount("/cache", FlavourKCPCache),
	}
}

func newPrefixCount(prefix string, allowed ...Flavour) *prefixCount {
	return &prefixCount{prefix: prefix, dir: []byte(prefix + "/"), allowed: allowed}
}

// NewDetector returns a Detector. Named prefixes are storages even without a key.
func NewDetector(named ...string) *Detector {
	d := &Detector{found: map[string]*evidence{}, named: slices.Clone(named)}
	for _, prefix := range named {
		d.counts = append(d.counts, newPrefixCount(prefix))
	}
	for _, l := range defaults() {
		if !slices.Contains(named, l.prefix) {
			d.counts = append(d.counts, l)
		}
	}
	// the longest first: a key counts for one prefix
	slices.SortStableFunc(d.counts, func(a, b *prefixCount) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return d
}

// Add reads one more key and keeps no reference to the key.
func (d *Detector) Add(key []byte) {
	if prefix, flavour, proof, ok := sign(key); ok && len(prefix) <= mostPrefix {
		d.note(prefix, flavour, proof, key)
	}
	for _, l := range d.counts {
		if bytes.HasPrefix(key, l.dir) {
			l.add(key)
			break
		}
	}
}

// Telling reports whether a key is proof or a sign of a prefix. Other keys count only below the
// prefixes that Settled passes to below.
func Telling(key []byte) bool {
	_, _, _, ok := sign(key)
	return ok
}

// DefaultPrefixes lists the default prefixes of servers.
func DefaultPrefixes() (prefixes []string) {
	for _, l := range defaults() {
		prefixes = append(prefixes, l.prefix)
	}
	return prefixes
}

// Settled reports whether Layouts stays the same without the keys that are not Telling. below
// reports whether a default prefix has keys.
func (d *Detector) Settled(below func(prefix string) bool) bool {
	flavours := d.proved()
	d.addSigned(flavours)
	return !slices.ContainsFunc(d.counts, func(l *prefixCount) bool {
		known := flavours[l.prefix]
		return (known == "" || known == FlavourUnknown) && below(l.prefix)
	})
}

// sign returns the prefix of a key and its flavour, and whether the key is proof. Most keys end in
// the switch.
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
		flavour, proof, ok = FlavourKCPCache, true, true
	case has(crds + "/system:system-crds"), has(crds + "/system:bound-crds"):
		flavour, proof, ok = FlavourKCPShard, true, true
	case string(name) == "cluster":
		prefix, flavour, ok = logicalCluster(string(dir))
	case has(crds): // PLURAL.GROUP, and a group has a dot
		flavour, proof, ok = FlavourKubernetes, true, bytes.Count(name, []byte(".")) >= 2
	case has("/apiregistration.k8s.io/apiservices"): // VERSION.GROUP; the group of "v1." is the core
		flavour, proof, ok = FlavourKubernetes, true, bytes.HasPrefix(name, []byte("v")) &&
			bytes.Contains(name, []byte("."))
	case has("/namespaces"):
		// every kube-apiserver creates these namespaces
		first := []string{"default", "kube-system", "kube-public", "kube-node-lease"}
		flavour, ok = FlavourKubernetes, slices.Contains(first, string(name)) && !endsInResource(prefix)
	}
	if !ok || !isPrefix(prefix) {
		return "", "", false, false
	}
	_, err := flavour.Layout(prefix).Parse(key)
	return prefix, flavour, proof, err == nil
}

// endsInResource reports whether s may be a prefix with the dir of a resource: "/registry/pods",
// "/registry/services/specs", "/registry/example.com/widgets". A pod "default" in a namespace
// "namespaces" is no sign of a prefix.
func endsInResource(s string) bool {
	before, last, ok := cutLast(s)
	if !ok || before == "" {
		return false // one segment: "/registry", even "/pods"
	}
	_, group, _ := cutLast(before)
	return kubernetesTable.byDir[last].dir != "" || kubernetesTable.byDir[group+"/"+last].dir != "" ||
		strings.Contains(group, ".")
}

// isPrefix reports whether s can be a storage prefix: "", or segments separated by single slashes,
// with or without a leading slash.
func isPrefix(s string) bool {
	if s == "" {
		return true
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(s, "/"), "/") {
		if segment == "" {
			return false
		}
	}
	return true
}

// cutLast cuts s around its last slash.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// logicalCluster returns the storage prefix of the key of a LogicalCluster. dir is the key without
// its last segment; dir ends in the logical cluster, in a cache preceded by the shard.
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
		d.openshift = true // every OpenShift 4 has this type
	}
	switch {
	case proof: // kcp's proof outranks the other: a tenant cannot forge proof of kcp
		e.proof, e.signs = higherFlavour(e.proof, flavour), nil
	case e.proof == "" && len(e.signs[flavour]) < mostSigns:
		if e.signs == nil {
			e.signs = map[Flavour][]string{}
		}
		e.signs[flavour] = append(e.signs[flavour], string(key))
	}
}

// add counts one key.
func (l *prefixCount) add(key []byte) {
	if l.seen >= mostCounted {
		return
	}
	l.seen++
	for i, f := range countedFlavours() {
		if (l.allowed == nil || slices.Contains(l.allowed, f)) && canParse(f.Layout(l.prefix), key) {
			l.parsed[i]++
		}
	}
}

// canParse reports whether the layout parses the key as a known or a custom resource.
func canParse(layout Layout, key []byte) bool {
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

// flavour returns the flavour of more than half of the keys, or "".
func (l *prefixCount) flavour() Flavour {
	best := 0
	for i, n := range l.parsed {
		if n > l.parsed[best] {
			best = i
		}
	}
	if l.parsed[best]*2 <= l.seen {
		return ""
	}
	return countedFlavours()[best]
}

// Layouts returns the storages found so far.
func (d *Detector) Layouts() Layouts {
	flavours := d.proved()
	d.addSigned(flavours)
	for _, l := range d.counts {
		if known := flavours[l.prefix]; known == "" || known == FlavourUnknown {
			flavours[l.prefix] = cmp.Or(l.flavour(), known)
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

// proved returns the prefixes with proof, and the named prefixes.
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

// addSigned adds the prefixes with signs only, the shortest first. A sign does not count if it is
// an object below a known prefix.
func (d *Detector) addSigned(flavours map[string]Flavour) {
	prefixes := slices.SortedFunc(maps.Keys(d.found), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, prefix := range prefixes {
		most := 0
		for _, f := range countedFlavours() {
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

// isObject reports whether key is the key of an object below a prefix shorter than prefix.
func isObject(flavours map[string]Flavour, prefix, key string) bool {
	for at := strings.LastIndexByte(prefix, '/'); at >= 0; at = strings.LastIndexByte(prefix[:at], '/') {
		f := flavours[prefix[:at]]
		if f != "" && canParse(f.Layout(prefix[:at]), []byte(key)) {
			return true
		}
	}
	return false
}
