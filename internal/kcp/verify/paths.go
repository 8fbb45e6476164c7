package verify

import (
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
)

// movedBy returns the path and the name of the moved logical cluster for a key under its path, ""
// for other keys. A logical cluster with that path as its name has its keys to itself.
func (c *checker) movedBy(in *clusters.File, shard *clusters.Shard, stored []byte) (path, name string) {
	key, _, err := in.Layouts.Parse(stored)
	if err != nil || key.Shard != "" || key.Prefix != shard.Prefix || shard.Cluster(key.Cluster) != nil || c.archive.moved[key.Cluster] {
		return "", ""
	}
	return key.Cluster, c.archive.paths[key.Cluster]
}

// purgedPath tells whether a key of the origin lies under the path of a moved logical cluster: a
// purge deletes it.
func (c *checker) purgedPath(key []byte) bool {
	_, name := c.movedBy(c.origin.File, c.from, key)
	return name != ""
}

// checkPaths finds keys under the paths of the moved logical clusters, which the archive lacks, and
// tells whether a purge deleted some.
func (c *checker) checkPaths() (deleted bool) {
	for rec := range survey.Each(&c.Reading, c.origin.Snapshot().Scan(c.Ctx)) {
		path, name := c.movedBy(c.origin.File, c.from, rec.Key)
		gone := rec.Tombstone && rec.Revision.Main > c.archive.manifest.Origin.Revision
		switch {
		case name == "":
		case rec.Live:
			c.found(codeKeysUnderPath, c.origin.file, string(rec.Key), "it lies under %q, the path of %q: the archive lacks it", path, name)
		case gone:
			deleted = true
			c.found(codeKeysUnderPath, c.origin.file, string(rec.Key), "it lay under %q, the path of %q, until revision %s: the archive lacks it",
				path, name, rec.Revision)
		}
	}
	if given := c.origin.before; given != nil {
		for rec := range survey.Each(&c.Reading, given.Snapshot().Live(c.Ctx, nil)) {
			known := c.about[[3]string{codeKeysUnderPath.Name, c.origin.path, string(rec.Key)}]
			if path, name := c.movedBy(c.origin.File, c.from, rec.Key); name != "" && !known {
				deleted = true
				c.found(codeKeysUnderPath, given, string(rec.Key), "it lies under %q, the path of %q: the archive lacks it", path, name)
			}
		}
	}
	for rec := range survey.Each(&c.Reading, c.destination.Snapshot().Live(c.Ctx, nil)) {
		if path, name := c.movedBy(c.destination.File, c.to, rec.Key); name != "" {
			c.found(codeKeysUnderPath, c.destination.file, string(rec.Key), "it lies under %q, the path of %q", path, name)
		}
	}
	return deleted
}
