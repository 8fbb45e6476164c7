package inspect

import (
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// Glance sets g from the bytes of the value. False means that Check or encoding.ReadMeta may fail,
// that the object is being deleted, or only that it has to be decoded to be sure. APIVersion, Kind
// and Managed are set of custom resources alone.
func (e *Entry) Glance(g *encoding.Glance) bool {
	key, err := e.ParseKey()
	if err != nil || e.Undecryptable != nil {
		return false
	}
	switch encoding.Detect(e.Value) {
	case encoding.FormatJSON:
		return key.IsCustom() && g.GlanceJSON(e.Value) && checkKind(key, gvr.FromAPIVersionAndKind(string(g.APIVersion), string(g.Kind))) == nil
	case encoding.FormatProtobuf:
		if key.IsCustom() || e.Check() != nil {
			return false
		}
		v, err := e.ParseValue()
		return err == nil && g.GlanceMessage(v.Raw)
	}
	return false
}
