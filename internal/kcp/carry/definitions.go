package carry

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
)

func (c *carrier) definitionKey(uid string) []byte {
	return c.to.Format(keys.Key{Resource: keys.DefinitionType(), Cluster: clusters.BoundCRDs, Name: uid})
}

// wants has the types of which bindings name definitions, by the UIDs of the definitions.
type wants map[string][]apischema.GroupResource

// bring stages the wanted bound definitions that the shard lacks, and merges stored versions into
// the others. All logical clusters of a shard use them: an unfit one is never brought.
func (c *carrier) bring(wanted wants) {
	s := c.serving
	for r := range survey.Each(&c.Reading, c.from.definitions(c.Ctx)) {
		types, wanted := wanted[r.key.Name]
		if r.key.Cluster != clusters.BoundCRDs || !wanted {
			continue
		}
		if here := s.Bound[r.key.Name]; here != nil {
			c.merge(r, here)
			continue
		}
		if c.Failed(c.from.reader.Decrypt(c.Ctx, r.Entry)) {
			return
		}
		if reason := unfit(r, types); reason != "" {
			s.Unfit[r.key.Name] = reason
			continue
		}
		s.Bound[r.key.Name] = c.from.shard.Definition(r.key.Name)
		c.carry(r, nil)
	}
}

// unfit says why a record is not the bound definition of types as kcp makes it (kcp
// pkg/reconciler/apis/apibinding/apibinding_reconcile.go); "" where it is.
func unfit(r original, types []apischema.GroupResource) string {
	if r.Undecryptable != nil {
		return fmt.Sprintf("whether it fits cannot be told, it cannot be decrypted: %v", r.Undecryptable)
	}
	crd, err := schema.ParseCRD(r.Value)
	if err != nil {
		return "it cannot be read"
	}
	_, bound := crd.Object().Annotations[annotationBound]
	switch {
	case crd.Object().Name != r.key.Name:
		return "its name is not that of its key"
	case !bound:
		return "it has no annotation " + annotationBound
	}
	for _, of := range types {
		if of != crd.GroupResource() {
			return fmt.Sprintf("it defines %s", crd.GroupResource())
		}
	}
	return ""
}

// annotationBound is on every bound definition, and on no other.
const annotationBound = "apis.kcp.io/bound-crd"

// merge adds the stored versions of the origin to the definition of the shard.
func (c *carrier) merge(r original, here *clusters.Definition) {
	key := c.definitionKey(r.key.Name)
	e, err := c.view.Get(c.Ctx, key)
	if c.Failed(err) || c.Failed(c.from.reader.Decrypt(c.Ctx, r.Entry)) {
		return
	}
	what := fmt.Sprintf("the definition of %s here", cmp.Or(here.Resource.String(), here.Name))
	if e == nil || e.Undecryptable != nil || r.Undecryptable != nil {
		c.raise(string(key), codeDefinitionDiffers, "%s and that of the origin cannot be compared: one cannot be decrypted", what)
		return
	}
	mine, err := schema.ParseCRD(e.Value)
	if err != nil {
		c.raise(string(key), codeDefinitionDiffers, "%s cannot be read", what)
		return
	}
	theirs, err := schema.ParseCRD(r.Value)
	if err != nil || !reflect.DeepEqual(mine.Object().Spec, theirs.Object().Spec) {
		c.raise(string(key), codeDefinitionDiffers, "%s has another spec than that of the origin", what)
	}
	if err == nil {
		c.mergeStored(key, e.Value, here, theirs.Object().Status.StoredVersions)
	}
}

func (c *carrier) mergeStored(key, value []byte, here *clusters.Definition, theirs []string) {
	stored, unlisted := survey.MergeStored(here.Versions, here.StoredVersions, theirs)
	for _, version := range unlisted {
		c.note(string(key), survey.CodeUnlistedVersion, "storedVersions of the origin has %q, which the definition here does not list: it is left out", version)
	}
	if len(stored) == len(here.StoredVersions) {
		return
	}
	merged, err := schema.SetStoredVersions(value, stored)
	if err != nil {
		err = fmt.Errorf("key %q: %w", key, err)
	}
	if !c.Failed(err) {
		c.change(key, merged)
	}
}

// needDefinitions reports wanted definitions of a logical cluster that are missing or unreadable.
func (c *carrier) needDefinitions(cluster *clusters.Cluster, wanted wants) {
	for b, bound := range cluster.Bound() {
		here := c.serving.Bound[bound.UID]
		switch {
		case bound.Virtual || wanted[bound.UID] == nil:
		case here != nil && here.Problem != "" && c.from.shard.Definition(bound.UID) == nil: // else it was compared
			c.raise(here.Key, codeDefinitionDiffers, "whether the definition of %s here fits cannot be told: %s", bound.Resource, here.Problem)
		case here == nil:
			where := "which is neither here nor in the origin"
			if reason := c.serving.Unfit[bound.UID]; reason != "" {
				where = "which is not here, and that of the origin does not come: " + reason
			}
			c.raise(string(c.definitionKey(bound.UID)), survey.CodeMissingDefinition,
				"APIBinding %q in %q needs the definition of %s (APIResourceSchema %q), %s", b.Name, cluster.Name, bound.Resource, bound.Schema, where)
		}
	}
}

// perhaps qualifies a missing definition where an unreadable one may define the type.
func perhaps(s *survey.Serving, cluster string) string {
	switch {
	case s.Undecryptable[cluster]:
		return ", as far as can be told: definitions of that logical cluster cannot be decrypted"
	case s.Undecryptable[clusters.SystemCRDs]:
		return ", as far as can be told: definitions of the shard cannot be read"
	}
	return ""
}

func (c *carrier) reportUnreadable() {
	for _, m := range c.serving.Unreadable {
		what := fmt.Sprintf("%s of %s in %q", survey.Counted(m.Records, "record"), m.Resource, m.Cluster)
		switch m.Code {
		case clusters.CodeUndecodable:
			c.note(m.Key, survey.CodeUndecodable, "%s cannot be read, and stored as it is", what)
			continue
		case survey.CodeUnlistedVersion:
			what += fmt.Sprintf(": stored at version %q, which their definition here does not list", m.Version)
		case survey.CodeUnserved:
			what += ": the kcp of this shard has no such type" + perhaps(c.serving, m.Cluster)
		default:
			what += ": nothing defines the type, neither in its own logical cluster nor for the whole shard" + perhaps(c.serving, m.Cluster)
		}
		c.raise(m.Key, codeOf(m.Code), "%s", what)
	}
}

// checkIdentities reports identities of types that the destination does not know: its kcp would
// have another for the same APIExport, and not find the objects.
func (c *carrier) checkIdentities(types map[string][]string) {
	for _, identity := range slices.Sorted(maps.Keys(types)) {
		if identity == "" || c.dest.known.Knows(identity, nil) {
			continue
		}
		slices.Sort(types[identity])
		c.raise("", codeUnknownIdentity, "identity %s, of %s, is that of no APIExport and no APIBinding that the shard or a cache knows",
			identity, strings.Join(slices.Compact(types[identity]), ", "))
	}
}
