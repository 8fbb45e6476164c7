package encoding

import (
	"bytes"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Glance holds the identifying part of Meta. Its bytes alias the value.
type Glance struct {
	APIVersion, Kind, Name, Namespace, UID []byte

	Spec []byte // JSON: the text of the field, nil without the field
	Odd  bool   // JSON: metadata has fields unknown to Glance, or a number may be out of range

	Owners      []Owner
	Managed     [][]byte // the apiVersions of managedFields, without adjacent repeats
	Annotations []Annotation
}

// Annotation is an annotation. Value is nil for unusual text; the caller must decode such text.
type Annotation struct{ Name, Value []byte }

// Owner holds the identifying part of an OwnerReference.
type Owner struct {
	APIVersion, Kind, UID []byte
	Controller            bool
}

// GlanceJSON sets g from a JSON value without decoding the value. False means that Parse or
// ReadMeta may fail, that the object is being deleted, or that only decoding gives a sure answer,
// for example with unusual text in the metadata. g keeps the memory of its lists for the next
// value.
func (g *Glance) GlanceJSON(value []byte) bool {
	g.reset()
	p := Scanner{Text: value}
	var seen names
	ok := p.Members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion":
			return seen.first(1) && p.plain(&g.APIVersion)
		case "kind":
			return seen.first(2) && p.plain(&g.Kind)
		case "metadata":
			return seen.first(4) && g.metadata(&p)
		case "spec":
			start := p.At
			ok := seen.first(8) && p.Value()
			g.Spec = value[start:p.At]
			return ok
		}
		return p.Value()
	})
	p.Next()
	g.Odd = g.Odd || p.Huge
	return ok && seen&^8 == 1|2|4 && isGroupVersion(g.APIVersion) && len(g.Kind) > 0 && p.At == len(value)
}

// Glance sets g from a JSON or protobuf value (see GlanceJSON). A protobuf value leaves APIVersion
// and Kind empty. The caller must decode values of other formats.
func (g *Glance) Glance(value []byte) bool {
	switch Detect(value) {
	case FormatJSON:
		return g.GlanceJSON(value)
	case FormatProtobuf:
		message, ok := messageOf(value)
		return ok && g.GlanceMessage(message)
	}
	return false
}

// messageOf returns the message of the object in a protobuf value.
func messageOf(value []byte) (message []byte, ok bool) {
	ok = EachField(value[len(protobufPrefix):], func(f WireField) bool {
		switch f.Number {
		case unknownRaw:
			message = f.Payload
		case unknownTypeMeta:
			return f.Type == protowire.BytesType && EachField(f.Payload, func(f WireField) bool {
				return f.Number > typeMetaKind || f.Type == protowire.BytesType
			})
		default:
			return true
		}
		return f.Type == protowire.BytesType
	})
	return message, ok && message != nil
}

// HasOwners reports whether a sound message of a protobuf object has ownerReferences.
func HasOwners(message []byte) bool {
	return !EachField(message, func(f WireField) bool {
		return f.Number != objectMeta || EachField(f.Payload, func(f WireField) bool {
			return f.Number != metaOwnerReferences
		})
	})
}

// GlanceMessage sets g, without APIVersion and Kind, from the message of a protobuf object (see
// GlanceJSON).
func (g *Glance) GlanceMessage(message []byte) bool {
	g.reset()
	return EachField(message, func(f WireField) bool {
		return f.Number != objectMeta || f.Type == protowire.BytesType && EachField(f.Payload, g.field)
	})
}

func (g *Glance) reset() {
	*g = Glance{Owners: g.Owners[:0], Managed: g.Managed[:0], Annotations: g.Annotations[:0]}
}

// isGroupVersion reports whether apiVersion is VERSION or GROUP/VERSION.
func isGroupVersion(apiVersion []byte) bool {
	_, version, grouped := bytes.Cut(apiVersion, []byte("/"))
	if !grouped {
		version = apiVersion
	}
	return len(version) > 0 && bytes.IndexByte(version, '/') < 0
}

// names has one bit for each field already seen in an object. Of two equal fields the last would
// count.
type names int

func (n *names) first(bit names) bool {
	twice := *n&bit != 0
	*n |= bit
	return !twice
}

func (g *Glance) metadata(p *Scanner) bool {
	known := [...]string{
		"name", "namespace", "uid", "generation", "creationTimestamp", "labels", "annotations", "finalizers",
		"ownerReferences", "managedFields",
	}
	var seen names
	return p.Members(func(name []byte) bool {
		if i := slices.Index(known[:], string(name)); i >= 0 && !seen.first(1<<i) {
			return false
		}
		switch string(name) {
		case "name":
			return p.plain(&g.Name)
		case "namespace":
			return p.plain(&g.Namespace)
		case "uid":
			return p.plain(&g.UID)
		case "generation":
			return passInteger(p)
		case "creationTimestamp":
			return passTime(p)
		case "annotations":
			return p.Members(func(name []byte) bool { return g.annotation(p, name) })
		case "labels":
			return p.Members(func([]byte) bool { return p.Str() })
		case "finalizers":
			return p.Elements(p.Str)
		case "ownerReferences":
			return p.Elements(func() bool { return g.owner(p) })
		case "managedFields":
			return p.Elements(func() bool { return g.entry(p) })
		case "deletionTimestamp":
			return false
		}
		g.Odd = true
		return p.Str() // decoding fails for some numbers
	})
}

// owner reads an element of ownerReferences.
func (g *Glance) owner(p *Scanner) bool {
	var o Owner
	var seen names
	ok := p.Members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion":
			return seen.first(1) && p.plain(&o.APIVersion)
		case "kind":
			return seen.first(2) && p.plain(&o.Kind)
		case "uid":
			return seen.first(4) && p.plain(&o.UID)
		case "name":
			return p.Str()
		case "controller":
			o.Controller = p.Word("true")
			return seen.first(8) && (o.Controller || p.Word("false"))
		case "blockOwnerDeletion":
			return p.Word("true") || p.Word("false")
		}
		return false
	})
	g.Owners = append(g.Owners, o)
	return ok
}

// annotation reads an element of annotations.
func (g *Glance) annotation(p *Scanner, name []byte) bool {
	start := p.At + 1
	if !p.Str() {
		return false
	}
	a := Annotation{name, p.Text[start : p.At-1]}
	if p.odd {
		a.Value = nil
	}
	g.Annotations = append(g.Annotations, a)
	return true
}

// entry reads an element of managedFields.
func (g *Glance) entry(p *Scanner) bool {
	var apiVersion []byte
	ok := p.Members(func(name []byte) bool {
		if string(name) == "apiVersion" {
			return apiVersion == nil && p.plain(&apiVersion)
		}
		return p.Value()
	})
	g.addManaged(apiVersion)
	return ok && apiVersion != nil
}

func (g *Glance) addManaged(apiVersion []byte) {
	if n := len(g.Managed); n == 0 || !bytes.Equal(g.Managed[n-1], apiVersion) {
		g.Managed = append(g.Managed, apiVersion)
	}
}

// passInteger consumes a whole number that fits an int64.
func passInteger(p *Scanner) bool {
	start := p.At
	return p.number() && p.At-start <= 18 && !bytes.ContainsAny(p.Text[start:p.At], ".eE")
}

// passTime consumes a time of RFC 3339.
func passTime(p *Scanner) bool {
	var text []byte
	if !p.plain(&text) {
		return false
	}
	_, err := time.Parse(time.RFC3339, string(text))
	return err == nil
}

// field reads a field of an ObjectMeta.
func (g *Glance) field(f WireField) bool {
	switch f.Number {
	case metaName:
		g.Name = f.Payload
	case metaNamespace:
		g.Namespace = f.Payload
	case metaUID:
		g.UID = f.Payload
	case metaGeneration:
		return f.Type == protowire.VarintType
	case metaCreationTimestamp:
		return f.Type == protowire.BytesType && EachField(f.Payload, func(f WireField) bool {
			return f.Number != timeSeconds || f.Type == protowire.VarintType
		})
	case metaDeletionTimestamp:
		return false
	case metaLabels:
		return f.Type == protowire.BytesType && EachField(f.Payload, new(Annotation).field)
	case metaAnnotations:
		g.Annotations = append(g.Annotations, Annotation{Value: []byte{}})
		return f.Type == protowire.BytesType && EachField(f.Payload, g.Annotations[len(g.Annotations)-1].field)
	case metaFinalizers:
	case metaOwnerReferences:
		g.Owners = append(g.Owners, Owner{})
		return f.Type == protowire.BytesType && EachField(f.Payload, g.Owners[len(g.Owners)-1].field)
	case metaManagedFields:
		return f.Type == protowire.BytesType && EachField(f.Payload, func(f WireField) bool {
			if f.Number == managedAPIVersion {
				g.addManaged(f.Payload)
			}
			return f.Number > managedAPIVersion || f.Type == protowire.BytesType
		})
	default:
		return true
	}
	return f.Type == protowire.BytesType
}

// field reads a field of a map entry.
func (a *Annotation) field(f WireField) bool {
	switch f.Number {
	case mapKey:
		a.Name = f.Payload
	case mapValue:
		a.Value = f.Payload
	default:
		return true
	}
	return f.Type == protowire.BytesType
}

// field reads a field of an OwnerReference.
func (o *Owner) field(f WireField) bool {
	switch f.Number {
	case ownerKind:
		o.Kind = f.Payload
	case ownerUID:
		o.UID = f.Payload
	case ownerAPIVersion:
		o.APIVersion = f.Payload
	case ownerName:
	case ownerController:
		o.Controller = f.Varint != 0
		return f.Type == protowire.VarintType
	case ownerBlockOwnerDeletion:
		return f.Type == protowire.VarintType
	default:
		return true
	}
	return f.Type == protowire.BytesType
}
