package doctor

import (
	"errors"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
)

// checkBuiltin checks whether an API server accepts an update of a built-in object without changes.
// Unreadable and too large values are reported elsewhere.
func (d *doctor) checkBuiltin(e *inspect.Entry) []*finding.Finding {
	if !d.options.Validate || e.Undecryptable != nil || len(e.Value) > requestLimit || !isKubernetes(e) {
		return nil
	}
	key, err := e.ParseKey()
	if err != nil {
		return nil
	}
	content, err := native.Decode(e.Value)
	if metadata, _ := content["metadata"].(map[string]any); err != nil || metadata["name"] != key.Name {
		return nil // the Leases of API servers have no name
	}
	switch wrong, err := native.RefusedAgain(content); {
	case errors.Is(err, native.ErrUncheckable):
		return []*finding.Finding{CodeUpdateRefused.Because("its updates cannot be checked: %v", err).At(string(e.Key))}
	case len(wrong) > 0:
		return []*finding.Finding{
			CodeUpdateRefused.Because("every update is refused for %s", finding.List(wrong)).At(string(e.Key)),
		}
	}
	return nil
}
