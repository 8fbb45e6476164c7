package doctor

import (
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// newMachines returns nil unless a restore on other machines is checked.
func (d *doctor) newMachines() *machines.Finder {
	if !d.options.NewMachines {
		return nil
	}
	var prefixes []string
	for _, s := range d.layouts.Storages() {
		prefixes = append(prefixes, s.Prefix)
	}
	finder, err := machines.NewFinder(d.ctx, d.reader, prefixes...)
	d.failed(err)
	return finder
}

// ties returns what ties an object to the machines; nothing of an object that is not readable.
func ties(finder *machines.Finder, e *inspect.Entry, l *look) (found []group) {
	if finder == nil || !l.readable() || !isKubernetes(e) {
		return nil
	}
	for _, tie := range finder.Ties(e) {
		found = append(found, group{tie.Code, tie.Subject})
	}
	return found
}

// checkMachines reports what is tied to the machines of the cluster by more than one object.
func (d *doctor) checkMachines() {
	if !d.options.NewMachines {
		return
	}
	var all []string
	for _, n := range d.kept["nodes"] {
		all = append(all, n.Name)
	}
	if len(all) > 0 {
		d.raiseMany(count{len(all), d.kept["nodes"][0].entry.Key}, machines.CodeOldNodes, "Node", "%s of the old machines: %s", few(all, 5, ""))
	}
	members, err := d.reader.Snapshot().Members(d.ctx)
	if d.failed(err) {
		return
	}
	var urls []string
	for _, m := range members {
		urls = append(urls, m.Name+"="+strings.Join(m.PeerURLs, ","))
	}
	d.raise(nil, machines.CodeNotInFile, "certificates, keys and files of the machines are not in it; members of etcd were: %s", few(urls, 5, ""))
}
