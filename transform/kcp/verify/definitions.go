package verify

import (
	"bytes"
	"context"
	"reflect"
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	crd "github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// judgeDefinitions finds the definitions that the archive's objects need on the destination.
func (j *judge) judgeDefinitions(ctx context.Context) error {
	for _, d := range j.manifest.Definitions {
		j.checked[QuestionLost]++
		key := []byte(j.to.Prefix + d.Key)
		now, err := j.DestinationOut.Get(ctx, key)
		if err != nil {
			return err
		}
		is := j.to.Definition(d.UID)
		switch {
		case now == nil || is == nil:
			j.found(CodeDefinitionLost, j.DestinationOut, key, "without this definition no server serves the %s of the logical cluster", d.Resource)
			continue
		case now.Sealed != nil:
			j.unjudged(QuestionLost, j.DestinationOut, key, now.Sealed.Error())
			continue
		case is.Problem != "":
			j.unjudged(QuestionLost, j.DestinationOut, key, is.Problem)
			continue
		}
		if err := j.judgeDefinition(ctx, d.Key, now); err != nil {
			return err
		}
		for _, version := range d.StoredVersions { // one that the definition does not have is not merged either
			if slices.Contains(is.Versions, version) && !slices.Contains(is.StoredVersions, version) {
				j.found(CodeStoredVersions, j.DestinationOut, key, "its storedVersions lack %s, at which objects of the logical cluster may be stored", version)
			}
		}
	}
	for _, d := range j.manifest.Missing {
		if j.to.Definition(d.UID) == nil {
			j.note("the definition %s (%s) was missing on the origin and is missing on the destination: no server serves its objects", d.UID, d.Resource)
		}
	}
	return nil
}

// judgeDefinition compares a definition with the archive's: one that the import brought is that, to the byte. Of one that was there,
// metadata and conditions are the shard's own, and the spec is to be the same, at whatever version of the API it is stored.
func (j *judge) judgeDefinition(ctx context.Context, key string, now *inspect.Entry) error {
	was := j.archived[key].entry
	if err := j.Archive.Open(ctx, was); err != nil {
		return err
	}
	if was.Sealed != nil {
		j.unjudged(QuestionLost, j.Archive, was.Key, was.Sealed.Error())
		return nil
	}
	if bytes.Equal(was.Value, now.Value) {
		return nil
	}
	before, err := crd.ParseCRD(was.Value)
	if err != nil {
		j.unjudged(QuestionLost, j.Archive, was.Key, err.Error())
		return nil
	}
	after, err := crd.ParseCRD(now.Value)
	if err != nil {
		j.unjudged(QuestionLost, j.DestinationOut, now.Key, err.Error())
		return nil
	}
	if !reflect.DeepEqual(before.Object().Spec, after.Object().Spec) {
		j.found(CodeDefinitionDiffers, j.DestinationOut, now.Key, "its spec is not the one that the origin had")
		return nil
	}
	brought, err := j.brought(ctx, now.Key, before.Object().UID == after.Object().UID)
	if brought {
		j.found(CodeDefinitionDiffers, j.DestinationOut, now.Key, "it came with the archive, and is not as it is there")
	}
	return err
}

// brought tells whether an import wrote a definition that was not there. Without what it was given, it is one that has the very UID of
// the archive's, was made right before the first record of the logical clusters, and is in its first version.
func (j *judge) brought(ctx context.Context, key []byte, sameUID bool) (bool, error) {
	if j.Destination != nil {
		has, err := j.Destination.Has(ctx, key)
		return !has, err
	}
	rec, err := j.DestinationOut.Snapshot().Get(ctx, key)
	if err != nil || rec == nil {
		return false, err
	}
	before := j.first - rec.ModRevision
	return sameUID && rec.Version == 1 && before > 0 && before <= int64(len(j.manifest.Definitions)), nil
}

// importedDefinition tells whether a definition that was there is what an import makes of it: the same, with the archive's stored
// versions behind its own. It is true, too, where nobody can tell, which is noted.
func (j *judge) importedDefinition(ctx context.Context, was, now *snapshot.Record) (bool, error) {
	theirs := *j.archived[string(now.Key[len(j.to.Prefix):])].entry
	if err := j.Archive.Open(ctx, &theirs); err != nil {
		return false, err
	}
	if theirs.Sealed != nil {
		j.unjudged(QuestionTouched, j.Archive, theirs.Key, theirs.Sealed.Error())
		return true, nil
	}
	before, sealed, err := j.definition(ctx, j.Destination, was)
	if err != nil || sealed {
		return true, err
	}
	after, sealed, err := j.definition(ctx, j.DestinationOut, now)
	if err != nil || sealed {
		return true, err
	}
	listed, stored := before.versions, before.stored
	if came, err := crd.ParseCRD(theirs.Value); err == nil {
		for _, version := range came.Object().Status.StoredVersions {
			if slices.Contains(listed, version) && !slices.Contains(stored, version) {
				stored = append(stored[:len(stored):len(stored)], version)
			}
		}
	}
	return reflect.DeepEqual(before.rest, after.rest) && slices.Equal(stored, after.stored), nil
}

// shardsOwn is a CustomResourceDefinition of the destination.
type shardsOwn struct {
	rest             map[string]any // all but its stored versions
	versions, stored []string
}

// definition reads one. sealed is true, and noted, where nobody can tell.
func (j *judge) definition(ctx context.Context, r *inspect.Reader, rec *snapshot.Record) (d shardsOwn, sealed bool, err error) {
	e := &inspect.Entry{Key: rec.Key, Stored: rec.Value}
	if err := r.Open(ctx, e); err != nil {
		return d, false, err
	}
	if e.Sealed != nil {
		j.unjudged(QuestionTouched, r, rec.Key, e.Sealed.Error())
		return d, true, nil
	}
	parsed, err := crd.ParseCRD(e.Value)
	if err == nil {
		d.rest, _, err = encoding.DecodeObject(e.Value)
	}
	if err != nil {
		j.unjudged(QuestionTouched, r, rec.Key, err.Error())
		return d, true, nil
	}
	for _, v := range parsed.Object().Spec.Versions {
		d.versions = append(d.versions, v.Name)
	}
	d.stored = parsed.StoredVersions()
	if status, ok := d.rest["status"].(map[string]any); ok {
		delete(status, "storedVersions")
	}
	return d, false, nil
}
