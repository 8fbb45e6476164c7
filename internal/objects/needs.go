package objects

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Need is an object that another object names.
type Need struct {
	Resource        schema.GroupResource
	Namespace, Name string
	Optional        bool // the other object is complete without it
}

// Bootstrapped reports whether an API server creates an RBAC object at its start.
func Bootstrapped(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return u.GetLabels()["kubernetes.io/bootstrapping"] == "rbac-defaults" &&
		u.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "true"
}

// Needs returns the objects that a built-in object names in its fields and in its pod templates, in
// the order of the fields, without PriorityClasses of the API server. Owners are no needs.
func Needs(content map[string]any) []Need {
	u := unstructured.Unstructured{Object: content}
	n := &naming{kind: u.GetKind(), namespace: u.GetNamespace(), added: map[Need]bool{}}
	for _, field := range slices.Sorted(maps.Keys(content)) {
		switch field {
		case "metadata", "status", "data", "stringData", "binaryData": // names there have no meaning for a server
		default:
			n.value(field, content[field])
		}
	}
	return n.needs
}

// naming collects the needs of an object.
type naming struct {
	kind, namespace string // of the object
	needs           []Need
	added           map[Need]bool
}

func (n *naming) add(need Need) {
	if need.Name != "" && !n.added[need] {
		n.needs, n.added[need] = append(n.needs, need), true
	}
}

func (n *naming) value(field string, value any) {
	switch value := value.(type) {
	case string:
		n.name(field, value)
	case map[string]any:
		n.reference(field, value)
		for _, field := range slices.Sorted(maps.Keys(value)) {
			n.value(field, value[field])
		}
	case []any:
		for _, item := range value {
			n.value(field, item)
		}
	}
}

// name adds the object named by a text field.
func (n *naming) name(field, name string) {
	shared := func(group, resource string) Need {
		return Need{Resource: schema.GroupResource{Group: group, Resource: resource}, Name: name}
	}
	own := func(group, resource string) Need {
		need := shared(group, resource)
		need.Namespace = n.namespace
		return need
	}
	switch field {
	case "serviceAccountName":
		n.add(own("", "serviceaccounts"))
	case "secretName":
		n.add(own("", "secrets"))
	case "claimName":
		n.add(own("", claims))
	case "serviceName":
		n.add(own("", "services"))
	case "resourceClaimName":
		n.add(own("resource.k8s.io", "resourceclaims"))
	case "resourceClaimTemplateName":
		n.add(own("resource.k8s.io", "resourceclaimtemplates"))
	case "deviceClassName":
		n.add(shared("resource.k8s.io", "deviceclasses"))
	case "storageClassName":
		n.add(shared("storage.k8s.io", "storageclasses"))
	case "volumeAttributesClassName":
		n.add(shared("storage.k8s.io", "volumeattributesclasses"))
	case "persistentVolumeName":
		n.add(shared("", volumes))
	case "volumeName":
		if n.kind == "PersistentVolumeClaim" { // in a volume it is a name in a storage system
			n.add(shared("", volumes))
		}
	case "ingressClassName":
		n.add(shared("networking.k8s.io", "ingressclasses"))
	case "priorityClassName":
		if !strings.HasPrefix(name, "system-") {
			n.add(shared("scheduling.k8s.io", "priorityclasses"))
		}
	case "runtimeClassName":
		n.add(shared("node.k8s.io", "runtimeclasses"))
	case "nodeName":
		n.add(shared("", nodes))
	case "clusterIPs":
		if name != corev1.ClusterIPNone { // a controller creates a missing IPAddress
			address := shared("networking.k8s.io", "ipaddresses")
			address.Optional = true
			n.add(address)
		}
	}
}

// reference adds the object named by the fields of an object reference.
func (n *naming) reference(field string, ref map[string]any) {
	text := func(name string) string { text, _ := ref[name].(string); return text }
	need := Need{Namespace: n.namespace, Name: text("name"), Optional: ref["optional"] == true}
	if namespace := text("namespace"); namespace != "" {
		need.Namespace = namespace
	}
	switch field {
	case "secret", "secrets", "secretKeyRef", "imagePullSecrets":
		need.Resource.Resource = "secrets"
	case "configMap", "configMapRef", "configMapKeyRef":
		need.Resource.Resource = "configmaps"
	case "service": // of an Ingress, a webhook, an APIService
		need.Resource.Resource = "services"
	case "claimRef": // a released volume names a deleted claim
		need.Resource.Resource, need.Optional = claims, true
	case "roleRef", "scaleTargetRef", "subjects", "dataSource":
		need.Resource = map[string]schema.GroupResource{
			"Role":                  {Group: rbacv1.GroupName, Resource: "roles"},
			"ClusterRole":           {Group: rbacv1.GroupName, Resource: "clusterroles"},
			"ServiceAccount":        {Resource: "serviceaccounts"},
			"Deployment":            {Group: "apps", Resource: "deployments"},
			"StatefulSet":           {Group: "apps", Resource: "statefulsets"},
			"ReplicaSet":            {Group: "apps", Resource: "replicasets"},
			"PersistentVolumeClaim": {Resource: claims},
		}[text("kind")]
		if need.Resource.Resource == "clusterroles" {
			need.Namespace = ""
		}
	default:
		if !strings.HasSuffix(strings.ToLower(field), "secretref") {
			return
		}
		need.Resource.Resource = "secrets"
	}
	if need.Resource.Resource != "" {
		n.add(need)
	}
}
