package transform

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/inspect"
)

// AsUpdated returns content as a server's update of o stores it: without fields that no longer
// apply, and with fields derived from others. Sources: PrepareForUpdate of each strategy below
// pkg/registry of Kubernetes 1.36, and the storage of Services. Immutable fields and status may
// change. content is not modified.
func AsUpdated(o *inspect.Object, content map[string]any) map[string]any {
	update := map[string]func(before, after map[string]any){
		"services": updateService, "secrets": updateSecret, "serviceaccounts": updateServiceAccount,
		"persistentvolumeclaims": updateClaim,
	}[o.Type.Name()]
	if update == nil {
		return content
	}
	after := runtime.DeepCopyJSON(content)
	update(o.Content, after)
	return after
}

// updateSecret moves stringData into data, and keeps the type of a Secret without one.
func updateSecret(before, after map[string]any) {
	if after["type"] == nil && before["type"] != nil {
		after["type"] = before["type"]
	}
	text, _ := after["stringData"].(map[string]any)
	data, is := after["data"].(map[string]any)
	if !is {
		data = map[string]any{}
	}
	for name, value := range text {
		if value, is := value.(string); is {
			data[name] = base64.StdEncoding.EncodeToString([]byte(value))
			delete(text, name)
		}
	}
	if len(text) == 0 {
		delete(after, "stringData")
	}
	if len(data) > 0 {
		after["data"] = data
	}
}

// updateServiceAccount removes all fields but the name from the Secrets of a ServiceAccount.
func updateServiceAccount(_, after map[string]any) {
	secrets, _ := after["secrets"].([]any)
	for _, secret := range secrets {
		ref, _ := secret.(map[string]any)
		for field := range ref {
			if field != "name" {
				delete(ref, field)
			}
		}
	}
}

// updateClaim keeps dataSource and dataSourceRef of a PersistentVolumeClaim equal.
func updateClaim(_, after map[string]any) {
	spec, _ := after["spec"].(map[string]any)
	source, one := spec["dataSource"].(map[string]any)
	ref, two := spec["dataSourceRef"].(map[string]any)
	switch namespace, _ := ref["namespace"].(string); {
	case one && !two:
		spec["dataSourceRef"] = runtime.DeepCopyJSON(source)
	case two && !one && namespace == "":
		source = runtime.DeepCopyJSON(ref)
		delete(source, "namespace")
		spec["dataSource"] = source
	}
}
