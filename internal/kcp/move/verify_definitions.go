package move

import (
	"bytes"
	"fmt"
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

// checkDefinitions finds the definitions that the archive's objects need on the destination.
func (c *checker) checkDefinitions() error {
	in := c.destination.file
	for _, d := range c.archive.manifest.Definitions {
		c.checked[QuestionLost]++
		key := c.to.Prefix + d.Key
		now, err := c.destination.Get(c.ctx, []byte(key))
		if err != nil {
			return err
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
		if err := checked(definitions{c}.compareDefinition(c.archive.records[d.Key], now)); err != nil {
			return err
		}
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
	return nil
}

// definitions compares the bound definitions of archive and destination.
type definitions struct{ *checker }

// compareDefinition: an imported definition is equal to the byte; one that was there before has its
// own metadata and conditions, and the same spec at any version of the API.
func (c definitions) compareDefinition(was *kept, now *inspect.Entry) error {
	value, err := c.decrypt(QuestionLost, c.archive.file, was.Key, was.Stored)
	if err != nil || bytes.Equal(value, now.Value) {
		return err
	}
	before, err := c.parse(QuestionLost, c.archive.file, was.Key, value)
	if err != nil {
		return err
	}
	in, key := c.destination.file, string(now.Key)
	after, err := c.parse(QuestionLost, in, now.Key, now.Value)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(before.Object().Spec, after.Object().Spec) {
		c.found(codeDefinitionChanged, in, key, "its spec is not the one that the origin had")
		return nil
	}
	brought, err := c.brought(now.Key, before.Object().UID == after.Object().UID)
	if brought {
		c.found(codeDefinitionChanged, in, key, "it came with the archive, and is not as it is there")
	}
	return err
}

// brought tells whether the import created a definition. Without its input, that is one in its
// first version with the archive's UID, right before the first imported record.
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

// parse parses a CustomResourceDefinition.
func (c definitions) parse(q Question, in *file, key, value []byte) (*schema.CRD, error) {
	crd, err := schema.ParseCRD(value)
	if err != nil {
		c.unchecked(q, in, string(key), err)
		return nil, errUnchecked
	}
	return crd, nil
}

// importedDefinition tells whether a definition changed as by an import: the archive's stored
// versions follow its own.
func (c definitions) importedDefinition(was, now *snapshot.Record) (bool, error) {
	of := c.archive.records[string(now.Key[len(c.to.Prefix):])]
	theirs, err := c.decrypt(QuestionTouched, c.archive.file, of.Key, of.Stored)
	if err != nil {
		return false, err
	}
	before, err := c.decrypt(QuestionTouched, c.destination.before, was.Key, was.Value)
	if err != nil {
		return false, err
	}
	after, err := c.decrypt(QuestionTouched, c.destination.file, now.Key, now.Value)
	if err != nil {
		return false, err
	}
	here, err := c.parse(QuestionTouched, c.destination.before, was.Key, before)
	if err != nil {
		return false, err
	}
	if _, err := c.parse(QuestionTouched, c.destination.file, now.Key, after); err != nil {
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

// checkIdentities finds identities that only the logical clusters themselves have here.
func (c *checker) checkIdentities() error {
	needs := map[string]string{} // a type, by identity
	for _, cluster := range c.archive.shard.Clusters {
		for identity, types := range cluster.Relied() {
			needs[identity] = types[len(types)-1]
		}
	}
	if hasUnread(c.archive.shard) { // the manifest knows them, and not which of them have no records
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
		case known.Knows(identity, c.archive.moved): // their APIExports count, their APIBindings do not
		case hasUnread(c.to):
			c.unchecked(QuestionLost, c.destination.file, "",
				fmt.Sprintf("what could be read does not have the identity %s, which %s needs, and not all could", identity, needs[identity]))
		default:
			c.found(codeIdentityUnknown, c.destination.file, "", "nothing that was there before has the identity %s, which %s needs", identity, needs[identity])
		}
	}
	return nil
}

// hasUnread tells whether a shard has unreadable records of the kinds that describe logical
// clusters.
func hasUnread(s *kcp.Shard) bool {
	return slices.ContainsFunc(s.Clusters, func(c *kcp.Cluster) bool { return len(c.Unread()) > 0 })
}

// checkServing notes the objects that kcp does not serve on the destination at their stored
// version. An import reports them, and --allow writes them. Missing definitions are findings.
func (c *checker) checkServing() error {
	s := newServing(c.to)
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
			if err := c.archive.Decrypt(c.ctx, e); err != nil {
				return err
			}
			switch {
			case e.Undecryptable != nil:
			case define:
				s.Define(was.key, e.Value)
			default:
				s.Check(was.key, []byte(c.to.Prefix+key), e.Value)
			}
		}
	}
	for _, m := range s.Unreadable {
		switch what := phrase.Count(m.Records, "record"); m.Code {
		case codeUnlistedVersion:
			c.note("%s of %s in %q: stored at version %q, which their definition on the destination does not list", what, m.Resource, m.Cluster, m.Version)
		case kcp.CodeUndecodable:
			c.note("%s of %s in %q cannot be read: nobody knows at which version", what, m.Resource, m.Cluster)
		default:
			c.note("%s of %s in %q: nothing on the destination defines the type", what, m.Resource, m.Cluster)
		}
	}
	return nil
}
