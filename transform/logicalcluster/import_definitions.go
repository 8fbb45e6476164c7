package logicalcluster

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
)

// definitionKey is where the bound definition of an APIResourceSchema lies in the shard.
func (c *carrier) definitionKey(uid string) []byte {
	return c.to.Format(keys.Key{Resource: definitionType(), Cluster: clusterBound, Name: uid})
}

// bring stages the bound definitions of the origin that wanted names and that the shard lacks, and adds to the others the versions that
// objects are stored at, which come in.
func (c *carrier) bring(ctx context.Context, s *serving, wanted func(uid string) bool) error {
	theirs := map[string]*clusters.Definition{}
	for _, d := range c.from.shard.Definitions {
		theirs[d.Name] = d
	}
	for r, err := range c.from.definitions(ctx) {
		if err != nil {
			return err
		}
		if r.key.Cluster != clusterBound || !wanted(r.key.Name) {
			continue
		}
		if here := s.bound[r.key.Name]; here != nil {
			err = c.merge(ctx, r, here)
		} else {
			s.bound[r.key.Name] = theirs[r.key.Name]
			err = c.carry(ctx, r, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge has the definition of the shard list the versions that objects are stored at in the origin. It stays what it is otherwise.
func (c *carrier) merge(ctx context.Context, r original, here *clusters.Definition) error {
	key := c.definitionKey(r.key.Name)
	e, err := c.view.Get(ctx, key)
	if err == nil {
		err = c.from.reader.Open(ctx, r.Entry)
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("the definition of %s here", cmp.Or(here.Resource.String(), here.Name))
	if e == nil || e.Sealed != nil || r.Sealed != nil {
		c.view.GoOn(string(key), codeDefinitionDiffers, what+" and that of the origin cannot be compared: one is encrypted and stays closed")
		return nil
	}
	mine, err := schema.ParseCRD(e.Value)
	if err != nil {
		c.view.GoOn(string(key), codeDefinitionDiffers, what+" cannot be read")
		return nil
	}
	theirs, err := schema.ParseCRD(r.Value)
	if err != nil || !reflect.DeepEqual(mine.Object().Spec, theirs.Object().Spec) {
		c.view.GoOn(string(key), codeDefinitionDiffers, what+" has another spec than that of the origin")
	}
	if err != nil {
		return nil
	}
	return c.mergeStored(ctx, key, e.Value, here, theirs.Object().Status.StoredVersions)
}

// mergeStored adds stored versions behind those that are listed. One that the definition does not have is left out: with it, no
// server would accept another update of the definition, and records that are stored at it are reported.
func (c *carrier) mergeStored(ctx context.Context, key, value []byte, here *clusters.Definition, theirs []string) error {
	stored := slices.Clone(here.StoredVersions)
	for _, version := range theirs {
		if slices.Contains(here.Versions, version) && !slices.Contains(stored, version) {
			stored = append(stored, version)
		}
	}
	if len(stored) == len(here.StoredVersions) {
		return nil
	}
	merged, err := schema.SetStoredVersions(value, stored)
	if err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	return c.change(ctx, key, merged, "objects that come in are stored at more versions")
}

// needDefinitions reports the bound definitions that a logical cluster needs, of those that wanted names, and that are nowhere.
func (c *carrier) needDefinitions(s *serving, cluster *clusters.Cluster, wanted func(uid string) bool) {
	for _, b := range cluster.Bindings {
		for _, bound := range b.Bound {
			if bound.Virtual || bound.UID == "" || !wanted(bound.UID) || s.bound[bound.UID] != nil {
				continue
			}
			c.view.GoOn(string(c.definitionKey(bound.UID)), codeMissingDefinition,
				fmt.Sprintf("APIBinding %q in %q needs the definition of %s (APIResourceSchema %q), which is neither here nor in the origin",
					b.Name, cluster.Name, bound.Resource, bound.Schema))
		}
	}
}
