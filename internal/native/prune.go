package native

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// fields lists the fields that some releases from OldestRelease on lack in a Go type, one type a
// line: package and name, then fields by number, JSON name and the releases that have them.
//
// Source: the Go types of the modules k8s.io/api and k8s.io/apimachinery 0.29 to 0.37.
//
//go:embed fields.txt
var fields string

// fieldSpan is a field of a Go type, with the releases that have it.
type fieldSpan struct {
	number int
	name   string
	known  span
}

var fieldSpans = sync.OnceValue(func() map[string][]fieldSpan {
	all := map[string][]fieldSpan{}
	for line := range strings.Lines(fields) {
		words := strings.Fields(line)
		for _, text := range words[1:] {
			parts := strings.Split(text, ":")
			number, _ := strconv.Atoi(parts[0])
			all[words[0]] = append(all[words[0]], fieldSpan{number, parts[1], parseSpan(parts[2])})
		}
	}
	return all
})

// typeName returns the name of a Go type in the list: core/v1.PodSpec.
func typeName(t reflect.Type) string {
	dir, version := path.Split(t.PkgPath())
	return path.Base(dir) + "/" + version + "." + t.Name()
}

// UnknownFields returns the paths of the fields of a stored object of a built-in kind that API
// servers of a minor release do not know, and drop at the next write. Fields with their defaults
// do not count. It returns nil for kinds unknown to this build.
func UnknownFields(v encoding.Value, minor int) []string {
	_, lost := prune(v, minor)
	return lost
}

// prune returns the message of v, or its JSON text, with the fields of a minor release: without
// those that the release does not know, and with the unset ones that it always writes as protobuf.
// lost has the paths of removed fields that are set to another value than their default. The result
// is v.Raw itself if it has these fields, for kinds unknown to this build, and for values that
// cannot be decoded.
func prune(v encoding.Value, minor int) (body []byte, lost []string) {
	m := messages()[v.GVK]
	if m == nil || v.Format == encoding.FormatCBOR || v.Format == encoding.FormatProtobuf && m.known(v.Raw, minor) {
		return v.Raw, nil
	}
	body, dropped, err := m.prune(v, minor)
	switch {
	case err != nil:
		return v.Raw, nil
	case len(dropped) == 0:
		return body, nil
	}
	defaults := defaultsOf(encoding.Value{Format: v.Format, GVK: v.GVK, Raw: body}, m, minor)
	for _, path := range slices.Sorted(maps.Keys(dropped)) {
		if !reflect.DeepEqual(dropped[path], defaults[path]) {
			lost = append(lost, path)
		}
	}
	return body, lost
}

// defaultsOf returns the fields unknown to a minor release that this build adds to a stored object
// as defaults, by path.
func defaultsOf(v encoding.Value, m *message, minor int) map[string]any {
	var obj runtime.Object
	var err error
	if v.Format == encoding.FormatProtobuf {
		obj, err = decodeProtobuf(v)
	} else {
		obj, err = legacyscheme.Scheme.New(v.GVK)
		if content, bad := DecodeParsed(v); bad != nil || err != nil ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj) != nil {
			return nil
		}
	}
	if err != nil {
		return nil
	}
	setDefaults(obj, LinkedRelease)
	if v.Raw, err = marshalForm(obj, v.GVK, v.Format); err != nil {
		return nil
	}
	_, added, _ := m.prune(v, minor)
	return added
}

// known reports whether a message has the fields of a minor release. False means unsure.
func (m *message) known(raw []byte, minor int) bool {
	added := 0
	for _, number := range m.added {
		if m.fields[number].known.has(minor) {
			added++
		}
	}
	for len(raw) > 0 {
		f, content, n := m.next(raw)
		if n < 0 || !f.known.has(minor) {
			return false
		}
		if f.added {
			added--
		}
		if f.kind == nestedMap {
			var isEntry bool
			if content, isEntry = valueOf(content); !isEntry {
				return false
			}
		}
		if f.below != nil && !f.below.opaque && !f.below.known(content, minor) {
			return false
		}
		raw = raw[n:]
	}
	return added == 0
}

// pruner gives objects the fields of a minor release.
type pruner struct {
	minor   int
	dropped map[string]any // set fields by path: bytes of the wire, or JSON content
	err     error
}

// prune returns an object with the fields of a minor release, and the content of the others that
// are set.
func (m *message) prune(v encoding.Value, minor int) (body []byte, dropped map[string]any, err error) {
	p := pruner{minor: minor, dropped: map[string]any{}}
	if v.Format == encoding.FormatProtobuf {
		body = p.wire(m, v.Raw, "")
		return body, p.dropped, p.err
	}
	content, _, err := encoding.DecodeObject(v.Raw)
	if err != nil {
		return nil, nil, err
	}
	p.content(m, content, "")
	body, err = encoding.Set(v.Raw, content)
	return body, p.dropped, err
}

// wire prunes a message. at is its path, with a dot at the end.
func (p *pruner) wire(m *message, raw []byte, at string) (out []byte) {
	counts, added := map[protowire.Number]int{}, m.added
	for len(raw) > 0 {
		number, of, n := protowire.ConsumeField(raw)
		if n < 0 {
			p.err = errUnfit
			return nil
		}
		for ; len(added) > 0 && added[0] <= int(number); added = added[1:] {
			if added[0] < int(number) {
				out = p.addUnset(m, added[0], out)
			}
		}
		var f wireField
		if int(number) < len(m.fields) {
			f = m.fields[number]
		}
		switch {
		case !f.known.has(p.minor):
			p.drop(&f, number, raw[:n], at)
		case of != protowire.BytesType || f.below == nil || f.below.opaque:
			out = append(out, raw[:n]...)
		case f.kind == nested && f.list:
			out = p.nested(&f, raw[:n], fmt.Sprintf("%s%s[%d]", at, f.name, counts[number]), out)
		default:
			out = p.nested(&f, raw[:n], at+f.name, out)
		}
		counts[number]++
		raw = raw[n:]
	}
	for _, number := range added {
		out = p.addUnset(m, number, out)
	}
	return out
}

// addUnset appends a field that was never set, if the release writes it.
func (p *pruner) addUnset(m *message, number int, out []byte) []byte {
	f := &m.fields[number]
	switch {
	case !f.always || !f.known.has(p.minor):
		return out
	case f.kind == varint:
		return protowire.AppendVarint(protowire.AppendTag(out, protowire.Number(number), protowire.VarintType), 0)
	}
	var content []byte
	if f.kind == nested {
		for below := range f.below.fields {
			content = p.addUnset(f.below, below, content)
		}
	}
	return protowire.AppendBytes(protowire.AppendTag(out, protowire.Number(number), protowire.BytesType), content)
}

// drop adds a field of the message at a path to the dropped ones.
func (p *pruner) drop(f *wireField, number protowire.Number, field []byte, at string) {
	where := at + f.name
	if f.known.last == 0 {
		where = strings.TrimSuffix(fmt.Sprintf("field %d of %s", number, strings.TrimSuffix(at, ".")), " of ")
	}
	if !f.unset(field) {
		elements, _ := p.dropped[where].([]byte) // of a list
		p.dropped[where] = append(elements, field...)
	}
}

// nested appends a pruned field with a message, or with an entry of a map of messages, to out.
func (p *pruner) nested(f *wireField, field []byte, where string, out []byte) []byte {
	_, _, tag := protowire.ConsumeTag(field)
	content, _ := protowire.ConsumeBytes(field[tag:])
	out = append(out, field[:tag]...)
	if f.kind != nestedMap {
		if f.name != "" {
			where += "."
		}
		return protowire.AppendBytes(out, p.wire(f.below, content, where))
	}
	value, isEntry := valueOf(content)
	if !isEntry {
		p.err = errUnfit
		return nil
	}
	key, _ := protowire.ConsumeBytes(content[1:])
	pruned := p.wire(f.below, value, where+"."+step(string(key))+".")
	entry := append([]byte{}, content[:1]...)
	entry = append(protowire.AppendBytes(entry, key), 2<<3|byte(protowire.BytesType))
	return protowire.AppendBytes(out, protowire.AppendBytes(entry, pruned))
}

// unset reports whether a field has the content of one that was never set: encoders write it, since
// its Go type is no pointer.
func (f *wireField) unset(field []byte) bool {
	_, of, tag := protowire.ConsumeTag(field)
	content := field[tag:]
	switch {
	case f.pointer || f.list:
		return false
	case of != protowire.BytesType:
		return !slices.ContainsFunc(content, func(b byte) bool { return b != 0 })
	}
	content, _ = protowire.ConsumeBytes(content)
	if f.below == nil || f.kind != nested {
		return len(content) == 0
	}
	for len(content) > 0 {
		below, _, n := f.below.next(content)
		if n < 0 || !below.unset(content[:n]) {
			return false
		}
		content = content[n:]
	}
	return true
}

// content prunes JSON content of a message.
func (p *pruner) content(m *message, obj map[string]any, at string) {
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		where, value := at+step(name), obj[name]
		f := m.lookup(name)
		switch {
		case f == nil && m.typed && (name == "apiVersion" || name == "kind"):
		case f == nil || !f.known.has(p.minor):
			delete(obj, name)
			if !isEmpty(value) || f != nil && f.pointer && value != nil {
				p.dropped[where] = value
			}
		case f.below == nil || f.below.opaque:
		case f.kind == nestedMap:
			entries, _ := value.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(entries)) {
				p.contentOf(f, entries[key], where+"."+step(key))
			}
		default:
			p.contentOf(f, value, where)
		}
	}
}

// contentOf prunes JSON content of a field: a message or a list of messages.
func (p *pruner) contentOf(f *wireField, value any, where string) {
	switch value := value.(type) {
	case map[string]any:
		p.content(f.below, value, where+".")
	case []any:
		for i := range value {
			p.contentOf(f, value[i], fmt.Sprintf("%s[%d]", where, i))
		}
	}
}

// step returns a name or key as a part of paths. The paths of all fields below a long key would
// take far more memory than the object.
func step(name string) string {
	const most = 253 + len("/") + 63 // no server accepts longer keys
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

// lookup returns the field with a JSON name, nil for none.
func (m *message) lookup(name string) *wireField {
	for i := range m.fields {
		f := &m.fields[i]
		if f.name == name {
			return f
		}
		if f.name == "" && f.below != nil {
			if inline := f.below.lookup(name); inline != nil {
				return inline
			}
		}
	}
	return nil
}

// isEmpty reports whether JSON content is null, or that of a field that was never set.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}
