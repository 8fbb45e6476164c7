package encoding

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// member is a field of a protobuf message known to Get and Set, under its name in JSON.
type member struct {
	name    string
	num     protowire.Number
	kind    kind
	list    bool
	members []member // of a kindMessage
}

type kind int

const (
	kindText kind = iota
	kindInteger
	kindBool
	kindMessage
	kindTextMap  // map<string, string>
	kindFieldsV1 // a FieldsV1 with JSON text
	kindTime     // only for ReadMeta
)

// objectMetaMember holds the stored fields of ObjectMeta (k8s.io/apimachinery
// pkg/apis/meta/v1/generated.proto) except times. ObjectMeta is field 1 of every API object.
var objectMetaMember = metadataWith(member{name: "generateName", num: 2},
	member{name: "managedFields", num: metaManagedFields, kind: kindMessage, list: true, members: managedFieldsMembers})

// readMetaMember holds the fields of Meta.
var readMetaMember = metadataWith(member{name: "creationTimestamp", num: metaCreationTimestamp, kind: kindTime},
	member{name: "deletionTimestamp", num: metaDeletionTimestamp, kind: kindTime})

func metadataWith(more ...member) member {
	return member{name: "metadata", num: objectMeta, kind: kindMessage, members: append([]member{
		{name: "name", num: metaName}, {name: "namespace", num: metaNamespace}, {name: "uid", num: metaUID},
		{name: "generation", num: metaGeneration, kind: kindInteger},
		{name: "labels", num: metaLabels, kind: kindTextMap},
		{name: "annotations", num: metaAnnotations, kind: kindTextMap},
		{name: "ownerReferences", num: metaOwnerReferences, kind: kindMessage, list: true, members: ownerMembers},
		{name: "finalizers", num: metaFinalizers, list: true},
	}, more...)}
}

var managedFieldsMembers = []member{
	{name: "manager", num: 1}, {name: "operation", num: 2}, {name: "apiVersion", num: managedAPIVersion},
	{name: "fieldsType", num: 6}, {name: "fieldsV1", num: 7, kind: kindFieldsV1, members: []member{fieldsV1Raw}},
	{name: "subresource", num: 8},
}

var ownerMembers = []member{
	{name: "kind", num: ownerKind}, {name: "name", num: ownerName}, {name: "uid", num: ownerUID},
	{name: "apiVersion", num: ownerAPIVersion}, {name: "controller", num: ownerController, kind: kindBool},
	{name: "blockOwnerDeletion", num: ownerBlockOwnerDeletion, kind: kindBool},
}

// podSpecMembers holds the needed fields of PodSpec (k8s.io/api core/v1 generated.proto).
var podSpecMembers = []member{
	{name: "containers", num: 2, kind: kindMessage, list: true, members: containerMembers},
	{name: "serviceAccountName", num: 8}, {name: "serviceAccount", num: 9},
	{name: "initContainers", num: 20, kind: kindMessage, list: true, members: containerMembers},
}

var containerMembers = []member{
	{name: "name", num: 1}, {name: "image", num: 2},
	{name: "env", num: 7, kind: kindMessage, list: true, members: []member{
		{name: "name", num: 1}, {name: "value", num: 2}, {name: "valueFrom", num: 3, kind: kindMessage},
	}},
}

// objectMembers returns the fields of an object known to Get and Set.
func objectMembers(apiVersion, kind string) []member {
	group, _, _ := strings.Cut(apiVersion, "/")
	template := member{name: "template", num: 3, kind: kindMessage}
	switch {
	case group == apiVersion && kind == "ConfigMap": // the core group has no name
		return []member{objectMetaMember, {name: "data", num: 2, kind: kindTextMap}}
	case group != "apps" && group != "extensions":
		return []member{objectMetaMember}
	case kind == "DaemonSet":
		template.num = 2
	case kind != "Deployment" && kind != "ReplicaSet" && kind != "StatefulSet":
		return []member{objectMetaMember}
	}
	template.members = []member{{name: "spec", num: 2, kind: kindMessage, members: podSpecMembers}}
	spec := member{name: "spec", num: 2, kind: kindMessage, members: []member{template}}
	if kind == "DaemonSet" && group == "extensions" {
		spec.members = append(spec.members, member{name: "templateGeneration", num: 5, kind: kindInteger})
	}
	return []member{objectMetaMember, spec}
}

var (
	mapValueMember = member{name: "value", num: mapValue}
	fieldsV1Raw    = member{name: "raw", num: 1}
)
