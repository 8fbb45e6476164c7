package encoding

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of ObjectMeta, OwnerReference and Time (k8s.io/apimachinery
// pkg/apis/meta/v1/generated.proto).
const (
	objectMeta protowire.Number = 1 // in every API object

	metaName              protowire.Number = 1
	metaNamespace         protowire.Number = 3
	metaUID               protowire.Number = 5
	metaGeneration        protowire.Number = 7
	metaCreationTimestamp protowire.Number = 8
	metaDeletionTimestamp protowire.Number = 9
	metaLabels            protowire.Number = 11
	metaAnnotations       protowire.Number = 12
	metaOwnerReferences   protowire.Number = 13
	metaFinalizers        protowire.Number = 14
	metaManagedFields     protowire.Number = 17

	managedAPIVersion protowire.Number = 3

	ownerKind               protowire.Number = 1
	ownerName               protowire.Number = 3
	ownerUID                protowire.Number = 4
	ownerAPIVersion         protowire.Number = 5
	ownerController         protowire.Number = 6
	ownerBlockOwnerDeletion protowire.Number = 7

	timeSeconds protowire.Number = 1

	mapKey   protowire.Number = 1
	mapValue protowire.Number = 2
)

// metaOfProtobuf reads the metadata. Like a generated decoder, metaOfProtobuf keeps the last of
// repeated scalars and merges repeated messages.
func metaOfProtobuf(data []byte) (Meta, error) {
	e, err := parseEnvelope(data)
	if err != nil {
		return Meta{}, err
	}
	content := map[string]any{}
	if err := readMembers(e.body.Payload, []member{readMetaMember}, content, true); err != nil {
		return Meta{}, err
	}
	metadata, _ := content["metadata"].(map[string]any)
	return metaOf(e.apiVersion, e.kind, metadata)
}

// readTime reads a metav1.Time like metav1.Time.Unmarshal: an empty message is the zero time,
// nanoseconds are ignored.
func readTime(msg []byte) (time.Time, error) {
	var seconds int64
	err := each(msg, func(f WireField) (err error) {
		if f.Number == timeSeconds {
			seconds, err = f.integer()
		}
		return at("seconds", err)
	})
	if err != nil || len(msg) == 0 {
		return time.Time{}, err
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func mapEntry(msg []byte) (key, value []byte, err error) {
	err = each(msg, func(f WireField) (err error) {
		switch f.Number {
		case mapKey:
			key, err = f.bytes()
		case mapValue:
			value, err = f.bytes()
		}
		return err
	})
	return key, value, err
}
