package doctor

import (
	"errors"
	"fmt"
	"strings"

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
	var reasons []string
	wrong, ofStatus, err := native.RefusedAgain(content)
	if err != nil && !errors.Is(err, native.ErrUnknownKind) && e.Check() == nil {
		reasons = append(reasons, fmt.Sprintf("its updates cannot be checked: %v", err))
	}
	if len(wrong) > 0 {
		reasons = append(reasons, "every update is refused for "+finding.List(wrong))
	}
	if len(ofStatus) > 0 {
		reasons = append(reasons, "every update of its status is refused for "+finding.List(ofStatus))
	}
	if len(reasons) == 0 {
		return nil
	}
	return []*finding.Finding{CodeUpdateRefused.Because("%s", strings.Join(reasons, "; ")).At(string(e.Key))}
}
