package serve

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// list writes a list while it is read. In protobuf the list is collected first, because the length
// of all items precedes the items.
func (e *encoder) list(l *list, w io.Writer) error {
	switch e.format.mediaType {
	case runtime.ContentTypeProtobuf:
		return e.protobufList(l, w)
	case runtime.ContentTypeYAML:
		return e.yamlList(l, w)
	case runtime.ContentTypeCBOR:
		return e.cborList(l, w)
	}
	return e.jsonList(l, w)
}

// each calls fn with each item of a list. The beginning of the list was already written.
func (l *list) each(fn func(*unstructured.Unstructured) error) error {
	if err := stream.Each(l.items, fn); err != nil {
		return fmt.Errorf("%w (after the list began)", err)
	}
	return nil
}

// content returns the content of a list item. Items of built-in kinds have no apiVersion and kind.
func (l *list) content(o *unstructured.Unstructured) map[string]any {
	if l.typed {
		delete(o.Object, "apiVersion")
		delete(o.Object, "kind")
	}
	return o.Object
}

// jsonList writes a list in JSON while it is read. The first write is as short as a server's.
func (e *encoder) jsonList(l *list, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	head, err := json.Marshal(struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
	}{l.TypeMeta, l.ListMeta})
	if err != nil {
		return err
	}
	open, before, between, behind := `,"items":[`, "", ",", "]}\n"
	if e.format.pretty {
		var indented bytes.Buffer
		if err := json.Indent(&indented, head, "", "  "); err != nil {
			return err
		}
		head = bytes.Replace(indented.Bytes(), []byte("\n}"), []byte("}"), 1) // the last one: metadata ends in "\n  }"
		open, before, between, behind = ",\n  \"items\": [", "\n    ", ",\n    ", "\n  ]\n}\n"
	}
	_, _ = out.Write(bytes.TrimSuffix(head, []byte("}"))) // Flush returns earlier errors of out
	_, _ = out.WriteString(open)
	items := 0
	err = l.each(func(o *unstructured.Unstructured) error {
		if items++; items > 1 {
			before = between
		}
		_, _ = out.WriteString(before)
		return e.item(l, o, out)
	})
	if err != nil {
		return err
	}
	if items == 0 {
		behind = strings.TrimPrefix(behind, "\n  ")
	}
	_, _ = out.WriteString(behind)
	return out.Flush()
}

// item writes an item of a list in JSON.
func (e *encoder) item(l *list, o *unstructured.Unstructured, out io.Writer) (err error) {
	var text []byte
	if e.format.pretty {
		text, err = json.MarshalIndent(l.content(o), "    ", "  ")
	} else {
		text, err = json.Marshal(l.content(o))
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// yamlList writes a list in YAML while it is read.
func (e *encoder) yamlList(l *list, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	part := func(before string, value any) error {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, _ = out.WriteString(before)
		text = bytes.TrimSuffix(text, []byte("\n"))
		if before != "" {
			text = bytes.ReplaceAll(text, []byte("\n"), []byte("\n  "))
		}
		_, _ = out.Write(text) // Flush returns earlier errors of out
		return out.WriteByte('\n')
	}
	if err := part("", map[string]any{"apiVersion": l.APIVersion}); err != nil {
		return err
	}
	items := "items:\n"
	if l.count == 0 {
		items = "items: []\n"
	}
	_, _ = out.WriteString(items)
	if err := l.each(func(o *unstructured.Unstructured) error { return part("- ", l.content(o)) }); err != nil {
		return err
	}
	if err := part("", map[string]any{"kind": l.Kind, "metadata": l.ListMeta}); err != nil {
		return err
	}
	return out.Flush()
}

// cborList writes a list in CBOR while it is read: a map with the items last.
func (e *encoder) cborList(l *list, w io.Writer) error {
	encode := func(content map[string]any) ([]byte, error) {
		var out bytes.Buffer
		err := e.raw.Encode(&unstructured.Unstructured{Object: content}, &out)
		return out.Bytes(), err
	}
	meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&l.ListMeta)
	if err != nil {
		return err
	}
	head, err := encode(map[string]any{"apiVersion": l.APIVersion, "kind": l.Kind, "metadata": meta})
	if err != nil {
		return err
	}
	head[cborTag]++ // one more map entry
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.Write(append(head, "\x45items\x9a"...)) // the key has five bytes; the array's length follows in four
	_, _ = out.Write(binary.BigEndian.AppendUint32(nil, uint32(l.count)))
	err = l.each(func(o *unstructured.Unstructured) error {
		item, err := encode(l.content(o))
		if err == nil {
			_, err = out.Write(item[cborTag:])
		}
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// cborTag is the length of the tag at the beginning of a CBOR document.
const cborTag = 3

// protobufList writes a list in protobuf. Only a few lists at a time are in memory.
func (e *encoder) protobufList(l *list, w io.Writer) error {
	gvk := schema.FromAPIVersionAndKind(l.APIVersion, l.Kind)
	if !e.scheme.Recognizes(gvk) {
		return errNoProtobuf(gvk)
	}
	select {
	case e.collected <- struct{}{}:
		defer func() { <-e.collected }()
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
	meta, err := l.ListMeta.Marshal()
	if err != nil {
		return err
	}
	// every list has its metadata in field 1 and its items in field 2
	parts, size := [][]byte{appendField(nil, 1, meta)}, 0
	err = stream.Each(l.items, func(o *unstructured.Unstructured) error {
		m, err := e.typed(o)
		if err != nil {
			return err
		}
		data, err := m.Marshal()
		parts = append(parts, appendField(nil, 2, data))
		return err
	})
	if err != nil {
		return err
	}
	kind, err := (&runtime.TypeMeta{APIVersion: l.APIVersion, Kind: l.Kind}).Marshal()
	if err != nil {
		return err
	}
	for _, part := range parts {
		size += len(part)
	}
	head := appendField([]byte("k8s\x00"), 1, kind) // runtime.Unknown: typeMeta and raw
	head = protowire.AppendVarint(protowire.AppendTag(head, 2, protowire.BytesType), uint64(size))
	for _, part := range slices.Insert(parts, 0, head) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func appendField(b []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), data)
}
