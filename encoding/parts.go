package encoding

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Part is a top-level field of a stored object. Its size includes the name or tag.
type Part struct {
	Name   string // JSON and CBOR
	Number int    // protobuf: field number in the message
	Bytes  int
}

// Parts holds the sizes of an object's fields. Envelope, commas and braces are not included.
type Parts struct {
	Fields        []Part
	ManagedFields int  // bytes of metadata.managedFields
	LastApplied   int  // bytes of the last-applied-configuration annotation
	Owned         bool // the metadata has owner references
}

// lastAppliedAnnotation is the annotation with the last input of "kubectl apply".
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// Measure is Parse, and also measures each field of the value: JSON and protobuf as stored, CBOR as
// encoded by an API server.
func Measure(data []byte) (v Value, p Parts, err error) {
	if Detect(data) == FormatJSON {
		var few [8]jsonField // on the stack
		e, obj, err := readJSON(data, few[:0])
		if err != nil {
			return v, p, fmt.Errorf("%s value: %w", FormatJSON, err)
		}
		if v, err = e.value(FormatJSON); err == nil {
			p, err = measureJSON(obj)
		}
		return v, p, err
	}
	if v, err = Parse(data); err != nil {
		return v, p, err
	}
	if v.Format == FormatProtobuf {
		p, err = measureWire(v.Raw)
	} else {
		p, err = measureCBOR(v.Raw)
	}
	return v, p, err
}

func measureWire(msg []byte) (p Parts, err error) {
	p.Fields = make([]Part, 0, 4)
	err = each(msg, func(f WireField) error {
		p.add(int(f.Number), f.end-f.start)
		if f.Number != objectMeta {
			return nil
		}
		return at("metadata", each(f.Payload, p.addMeta))
	})
	return p, err
}

// addMeta counts a field of an ObjectMeta.
func (p *Parts) addMeta(f WireField) error {
	switch f.Number {
	case metaManagedFields:
		p.ManagedFields += f.end - f.start
	case metaOwnerReferences:
		p.Owned = true
	case metaAnnotations:
		key, _, err := mapEntry(f.Payload)
		if err != nil {
			return at("annotations", err)
		}
		if string(key) == lastAppliedAnnotation {
			p.LastApplied += f.end - f.start
		}
	}
	return nil
}

func measureJSON(obj jsonObject) (p Parts, err error) {
	p.Fields = make([]Part, 0, len(obj))
	for _, f := range obj {
		p.Fields = append(p.Fields, Part{Name: f.name, Bytes: f.size()})
	}
	meta, err := obj.object("metadata")
	if err != nil {
		return p, err
	}
	p.ManagedFields, p.Owned = meta.sizeOf("managedFields"), meta.last("ownerReferences") >= 0
	annotations, err := meta.object("annotations")
	p.LastApplied = annotations.sizeOf(lastAppliedAnnotation)
	return p, at("metadata", err)
}

func (o jsonObject) sizeOf(name string) int {
	if i := o.last(name); i >= 0 {
		return o[i].size()
	}
	return 0
}

// size returns the bytes of the field's name, colon and value.
func (f jsonField) size() int { return len(f.key) + len(":") + len(f.value) }

// add counts a field of a message. Adjacent elements of a repeated field are one part.
func (p *Parts) add(number, size int) {
	if n := len(p.Fields); n > 0 && p.Fields[n-1].Number == number {
		p.Fields[n-1].Bytes += size
		return
	}
	p.Fields = append(p.Fields, Part{Number: number, Bytes: size})
}

func measureCBOR(data []byte) (p Parts, err error) {
	obj, err := decodeCBOR(data)
	if err != nil {
		return p, err
	}
	size := func(name string, value any) int {
		b, encodeErr := direct.Marshal(value)
		if err == nil {
			err = encodeErr
		}
		return len(b) + len(name) + 1 // the head of the name is one byte for names up to 23 bytes
	}
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		p.Fields = append(p.Fields, Part{Name: name, Bytes: size(name, obj[name])})
	}
	meta, _ := obj["metadata"].(map[string]any)
	if value, is := meta["managedFields"]; is {
		p.ManagedFields = size("managedFields", value)
	}
	_, p.Owned = meta["ownerReferences"]
	annotations, _ := meta["annotations"].(map[string]any)
	if value, is := annotations[lastAppliedAnnotation]; is {
		p.LastApplied = size(lastAppliedAnnotation, value) + 1
	}
	return p, err
}

// ObjectMetaField is the field number of metadata in every protobuf object.
const ObjectMetaField = int(objectMeta)

// Weigh estimates the memory of JSON content in bytes: 16 for each value, 48 more for a map or
// list, and the bytes of keys and strings.
func Weigh(value any) int {
	const one, container = 16, 48
	weight := one
	switch value := value.(type) {
	case string:
		weight += len(value)
	case map[string]any:
		weight += container
		for key, element := range value {
			weight += one + len(key) + Weigh(element)
		}
	case []any:
		weight += container
		for _, element := range value {
			weight += Weigh(element)
		}
	}
	return weight
}
