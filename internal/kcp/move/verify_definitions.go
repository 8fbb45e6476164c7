package move

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// checkDefinitions finds the definitions on the destination that the archive's objects need.
func (c *checker) checkDefinitions() error {
	in := c.destination.file
	for _, d := range c.archive.manifest.Definitions {
		c.checked[QuestionLost]++
		key := c.destination.shard.Prefix + d.Key
		now, err := c.destination.Get(c.ctx, []byte(key))
		if err != nil {
			return err
		}
		is := c.destination.shard.Definition(d.UID)
		switch {
		case now == nil || is == nil:
			in.found(codeDefinitionLost, key, "without this definition no server serves the %s of the logical cluster",
				d.Resource)
			continue
		case now.Undecryptable != nil:
			in.unchecked(QuestionLost, key, "%v", now.Undecryptable)
			continue
		case is.Problem != "":
			in.unchecked(QuestionLost, key, "%v", is.Problem)
			continue
		}
		if err := checked(definitions{c}.compareDefinition(c.archive.records[d.Key], now)); err != nil {
			return err
		}
		for _, version := range d.StoredVersions { // a version that the definition lacks is not merged either
			if slices.Contains(is.Versions, version) && !slices.Contains(is.StoredVersions, version) {
				in.found(codeStoredVersions, key,
					"its storedVersions lack %s, at which objects of the logical cluster may be stored", version)
			}
		}
	}
	for _, d := range c.archive.manifest.Missing {
		if c.destination.shard.Definition(d.UID) == nil {
			c.note("the definition %s (%s) was missing on the origin and is missing on the destination: no server "+
				"serves its objects", d.UID, d.Resource)
		}
	}
	return nil
}

// definitions compares the bound definitions of archive and destination.
type definitions struct{ *checker }

// compareDefinition compares a definition with the archive's. An imported definition is equal to
// the byte; an older definition has its own metadata and conditions, and the same spec at any
// version of the API.
func (c definitions) compareDefinition(was *kept, now *inspect.Entry) error {
	value, err := c.decrypt(QuestionLost, c.archive.file, was.Key, was.Stored)
	if err != nil || bytes.Equal(value, now.Value) {
		return err
	}
	_, before, err := c.read(QuestionLost, c.archive.file, was.Key, was.Stored)
	if err != nil {
		return err
	}
	in, key := c.destination.file, string(now.Key)
	_, after, err := c.read(QuestionLost, in, now.Key, now.Stored)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(before.Object().Spec, after.Object().Spec) {
		in.found(codeDefinitionChanged, key, "its spec is not the one that the origin had")
		return nil
	}
	brought, err := c.brought(now.Key, before.Object().UID == after.Object().UID)
	if brought {
		in.found(codeDefinitionChanged, key, "it came with the archive, and is not as it is there")
	}
	return err
}

// brought reports whether the import created a definition. Without the input of the import, that is
// a definition in its first version with the archive's UID, directly before the first imported
// record.
func (c definitions) brought(key []byte, sameUID bool) (bool, error) {
	if c.destination.before != nil {
		rec, err := c.destination.before.get(c.ctx, key)
		return err == nil && rec == nil, err
	}
	rec, err := c.destination.file.get(c.ctx, key)
	if err != nil || rec == nil {
		return false, err
	}
	before := c.imported - rec.ModRevision
	return sameUID && rec.Version == 1 && before > 0 && before <= int64(len(c.archive.manifest.Definitions)), nil
}

// read decrypts and parses a CustomResourceDefinition.
func (c definitions) read(q Question, in *file, key, stored []byte) (value []byte, crd *schema.CRD, err error) {
	if value, err = c.decrypt(q, in, key, stored); err != nil {
		return nil, nil, err
	}
	if crd, err = schema.ParseCRD(value); err != nil {
		in.unchecked(q, string(key), "%v", err)
		err = errUnchecked
	}
	return value, crd, err
}

// importedDefinition reports whether a definition changed as by an import: the archive's stored
// versions follow its own.
func (c definitions) importedDefinition(was, now *snapshot.Record) (bool, error) {
	const q = QuestionTouched
	of := c.archive.records[string(now.Key[len(c.destination.shard.Prefix):])]
	theirs, err := c.decrypt(q, c.archive.file, of.Key, of.Stored)
	if err != nil {
		return false, err
	}
	before, here, err := c.read(q, c.destination.before, was.Key, was.Value)
	if err != nil {
		return false, err
	}
	after, _, err := c.read(q, c.destination.file, now.Key, now.Value)
	if err != nil {
		return false, err
	}
	came, err := schema.ParseCRD(theirs)
	if err != nil {
		return bytes.Equal(before, after), nil
	}
	stored, _ := mergeStored(versionsOf(here), here.StoredVersions(), came.Object().Status.StoredVersions)
	want, err := schema.SetStoredVersions(before, stored)
	return err == nil && bytes.Equal(want, after), nil
}

// checkIdentities finds identities that only the moved logical clusters have on the destination.
func (c *checker) checkIdentities() error {
	needs := map[string]string{} // a type, by identity
	for _, cluster := range c.archive.shard.Clusters {
		for identity, types := range cluster.Relied() {
			needs[identity] = types[len(types)-1]
		}
	}
	if hasUnread(c.archive.shard) { // the manifest has these identities, but not whether they have records
		for _, id := range c.archive.manifest.Identities {
			if !id.Own && len(id.Resources) > 0 {
				needs[id.Hash] = id.Resources[0]
			}
		}
	}
	known := &kcp.File{Shards: c.destination.Shards}
	for _, out := range c.outputs {
		known.Caches = append(known.Caches, out.Caches...)
	}
	for _, identity := range slices.Sorted(maps.Keys(needs)) {
		switch {
		case known.Knows(identity, c.archive.moved): // APIExports of the moved clusters count, their APIBindings do not
		case hasUnread(c.destination.shard):
			c.destination.unchecked(QuestionLost, "",
				"what could be read does not have the identity %s, which %s needs, and not all could", identity,
				needs[identity])
		default:
			c.destination.found(codeIdentityUnknown, "",
				"nothing that was there before has the identity %s, which %s needs", identity, needs[identity])
		}
	}
	return nil
}

// hasUnread reports whether a shard has unreadable records of the kinds that describe logical
// clusters.
func hasUnread(s *kcp.Shard) bool {
	return slices.ContainsFunc(s.Clusters, func(c *kcp.Cluster) bool { return len(c.Unread()) > 0 })
}

// checkServing notes the objects that kcp does not serve on the destination at their stored
// version. An import reports such objects, and --allow writes them. Missing definitions are
// findings.
func (c *checker) checkServing() error {
	s := newServing(c.destination.shard)
	for _, cluster := range c.archive.shard.Clusters {
		s.Bind(cluster)
	}
	for _, define := range []bool{true, false} {
		for key, was := range c.archive.sorted() {
			if was.definition || define != (was.key.Resource == keys.DefinitionType()) {
				continue
			}
			if versions, code := s.Versions(was.key); !define && versions == nil && code == nil {
				continue // decrypt no Secret for the check
			}
			e := &inspect.Entry{Key: was.Key, Stored: was.Stored}
			if err := c.archive.Decrypt(c.ctx, e); err != nil {
				return err
			}
			switch {
			case e.Undecryptable != nil:
			case define:
				s.Define(was.key, e.Value)
			default:
				s.Check(was.key, []byte(c.destination.shard.Prefix+key), e.Value)
			}
		}
	}
	for _, m := range s.Unreadable {
		switch what := phrase.Count(m.Records, "record"); m.Code {
		case codeUnlistedVersion:
			c.note("%s of %s in %q: stored at version %q, which their definition on the destination does not list",
				what, m.Resource, m.Cluster, m.Version)
		case kcp.CodeUndecodable:
			c.note("%s of %s in %q cannot be read: nobody knows at which version", what, m.Resource, m.Cluster)
		default:
			c.note("%s of %s in %q: nothing on the destination defines the type", what, m.Resource, m.Cluster)
		}
	}
	return nil
}
