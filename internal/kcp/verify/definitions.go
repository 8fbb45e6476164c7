package verify

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// checkDefinitions finds the definitions that the archive's objects need on the destination.
func (c *checker) checkDefinitions() {
	in := c.destination.file
	for _, d := range c.archive.manifest.Definitions {
		c.checked[QuestionLost]++
		key := c.to.Prefix + d.Key
		now, err := c.destination.Get(c.Ctx, []byte(key))
		if c.Failed(err) {
			return
		}
		is := c.to.Definition(d.UID)
		switch {
		case now == nil || is == nil:
			c.found(codeDefinitionLost, in, key, "without this definition no server serves the %s of the logical cluster", d.Resource)
			continue
		case now.Undecryptable != nil:
			c.unchecked(QuestionLost, in, key, now.Undecryptable)
			continue
		case is.Problem != "":
			c.unchecked(QuestionLost, in, key, is.Problem)
			continue
		}
		c.compareDefinition(c.archive.records[d.Key], now)
		for _, version := range d.StoredVersions { // one that the definition does not have is not merged either
			if slices.Contains(is.Versions, version) && !slices.Contains(is.StoredVersions, version) {
				c.found(codeStoredVersions, in, key, "its storedVersions lack %s, at which objects of the logical cluster may be stored", version)
			}
		}
	}
	for _, d := range c.archive.manifest.Missing {
		if c.to.Definition(d.UID) == nil {
			c.note("the definition %s (%s) was missing on the origin and is missing on the destination: no server serves its objects", d.UID, d.Resource)
		}
	}
}

// compareDefinition: an imported definition is equal to the byte; one that was there before has its
// own metadata and conditions, and the same spec at any version of the API.
func (c *checker) compareDefinition(was *kept, now *inspect.Entry) {
	value, ok := c.decrypt(QuestionLost, c.archive.file, was.Key, was.Stored)
	if !ok || bytes.Equal(value, now.Value) {
		return
	}
	before := c.parse(QuestionLost, c.archive.file, was.Key, value)
	after := c.parse(QuestionLost, c.destination.file, now.Key, now.Value)
	in, key := c.destination.file, string(now.Key)
	switch {
	case before == nil || after == nil:
	case !reflect.DeepEqual(before.Object().Spec, after.Object().Spec):
		c.found(codeDefinitionDiffers, in, key, "its spec is not the one that the origin had")
	case c.brought(now.Key, before.Object().UID == after.Object().UID):
		c.found(codeDefinitionDiffers, in, key, "it came with the archive, and is not as it is there")
	}
}

// brought tells whether the import created a definition. Without its input, that is one in its
// first version with the archive's UID, right before the first imported record.
func (c *checker) brought(key []byte, sameUID bool) bool {
	if c.destination.before != nil {
		return c.get(c.destination.before, key) == nil
	}
	rec := c.get(c.destination.file, key)
	if rec == nil {
		return false
	}
	before := c.imported - rec.ModRevision
	return sameUID && rec.Version == 1 && before > 0 && before <= int64(len(c.archive.manifest.Definitions))
}

// parse parses a CustomResourceDefinition; nil, and reported as unchecked, where it cannot be read.
func (c *checker) parse(q Question, in *file, key, value []byte) *schema.CRD {
	crd, err := schema.ParseCRD(value)
	if err != nil {
		c.unchecked(q, in, string(key), err)
		return nil
	}
	return crd
}

// importedDefinition tells whether a definition changed as by an import: the archive's stored
// versions follow its own. An unreadable value is reported as unchecked, and passes.
func (c *checker) importedDefinition(was, now *snapshot.Record) bool {
	of := c.archive.records[string(now.Key[len(c.to.Prefix):])]
	theirs, ok := c.decrypt(QuestionTouched, c.archive.file, of.Key, of.Stored)
	if !ok {
		return true
	}
	before, ok := c.decrypt(QuestionTouched, c.destination.before, was.Key, was.Value)
	if !ok {
		return true
	}
	after, ok := c.decrypt(QuestionTouched, c.destination.file, now.Key, now.Value)
	if !ok {
		return true
	}
	here := c.parse(QuestionTouched, c.destination.before, was.Key, before)
	if here == nil || c.parse(QuestionTouched, c.destination.file, now.Key, after) == nil {
		return true
	}
	came, err := schema.ParseCRD(theirs)
	if err != nil {
		return bytes.Equal(before, after)
	}
	var listed []string
	for _, v := range here.Object().Spec.Versions {
		listed = append(listed, v.Name)
	}
	stored, _ := survey.MergeStored(listed, here.StoredVersions(), came.Object().Status.StoredVersions)
	want, err := schema.SetStoredVersions(before, stored)
	return err == nil && bytes.Equal(want, after)
}

// checkIdentities finds identities that only the logical clusters themselves have here.
func (c *checker) checkIdentities() {
	needs := map[string]string{} // a type, by identity
	for _, cluster := range c.archive.shard.Clusters {
		for _, r := range cluster.Resources {
			needs[r.Identity] = r.Resource.String()
		}
		for _, bound := range cluster.Bound() {
			if !bound.Virtual {
				needs[bound.Identity] = bound.Resource.String()
			}
		}
	}
	if hasUnread(c.archive.shard) { // the manifest knows them, and not which of them have no records
		for _, id := range c.archive.manifest.Identities {
			if !id.Own && len(id.Resources) > 0 {
				needs[id.Hash] = id.Resources[0]
			}
		}
	}
	delete(needs, "")
	known := &clusters.File{Shards: c.destination.Shards}
	for _, out := range c.outputs {
		known.Caches = append(known.Caches, out.Caches...)
	}
	for _, identity := range slices.Sorted(maps.Keys(needs)) {
		switch {
		case known.Knows(identity, c.archive.moved): // their APIExports count, their APIBindings do not
		case hasUnread(c.to):
			c.unchecked(QuestionLost, c.destination.file, "",
				fmt.Sprintf("what could be read does not have the identity %s, which %s needs, and not all could", identity, needs[identity]))
		default:
			c.found(codeIdentityUnknown, c.destination.file, "", "nothing that was there before has the identity %s, which %s needs", identity, needs[identity])
		}
	}
}

// hasUnread tells whether a shard has unreadable records of the kinds that describe logical
// clusters.
func hasUnread(s *clusters.Shard) bool {
	return slices.ContainsFunc(s.Clusters, func(c *clusters.Cluster) bool { return len(c.Unread()) > 0 })
}

// checkServing notes the objects that kcp does not serve on the destination at their stored
// version. An import reports them, and --allow writes them. Missing definitions are findings.
func (c *checker) checkServing() {
	s := survey.NewServing(c.to)
	for _, cluster := range c.archive.shard.Clusters {
		s.Bind(cluster)
	}
	for _, define := range []bool{true, false} {
		for key, was := range c.archive.sorted() {
			if was.definition || define != (was.key.Resource == keys.DefinitionType()) {
				continue
			}
			if versions, code := s.Versions(was.key); !define && versions == nil && code == nil {
				continue // no Secret is decrypted for it
			}
			e := &inspect.Entry{Key: was.Key, Stored: was.Stored}
			switch err := c.archive.Decrypt(c.Ctx, e); {
			case c.Failed(err):
				return
			case e.Undecryptable != nil:
			case define:
				s.Define(was.key, e.Value)
			default:
				s.Check(was.key, []byte(c.to.Prefix+key), e.Value)
			}
		}
	}
	for _, m := range s.Unreadable {
		switch what := survey.Counted(m.Records, "record"); m.Code {
		case survey.CodeUnlistedVersion:
			c.note("%s of %s in %q: stored at version %q, which their definition on the destination does not list", what, m.Resource, m.Cluster, m.Version)
		case clusters.CodeUndecodable:
			c.note("%s of %s in %q cannot be read: nobody knows at which version", what, m.Resource, m.Cluster)
		default:
			c.note("%s of %s in %q: nothing on the destination defines the type", what, m.Resource, m.Cluster)
		}
	}
}
