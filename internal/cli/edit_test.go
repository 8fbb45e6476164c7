package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/transform"
)

// editCmd writes a snapshot with changed records: edit IN OUT EDITS. Like a fixture, OUT must not
// change afterwards. EDITS has one edit per line; later edits see earlier ones.
//
//	put KEY FILE        the bytes of FILE
//	object KEY FILE     FILE's object (YAML) in JSON, like a stored custom resource
//	native KEY FILE     FILE's object of a built-in kind in protobuf
//	set KEY PATH JSON   one field of a JSON object; a dot in a name of PATH is written \.
//	del KEY             one record
//	prune PREFIX        all records below PREFIX
//	copy FROM TO        all records below one storage prefix, below another too
//	xN EDIT             the edit N times, with 000, 001 ... for each @@@ in it and in its file
func editCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit IN OUT EDITS")
	}
	plan := func(ctx context.Context, v *transform.View) error {
		for line := range strings.Lines(ts.ReadFile(args[2])) {
			if err := editLine(ctx, v, line, ts.ReadFile); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
		}
		return nil
	}
	out := ts.MkAbs(args[1])
	_, err := transform.Run(context.Background(), transform.Options{Command: "edit", In: ts.MkAbs(args[0]), Out: out},
		planFunc(plan))
	ts.Check(err)
	ts.Check(os.Chmod(out, 0o440))
	unchanging(ts, args[1])
}

// planFunc is a function used as a transform.
type planFunc func(ctx context.Context, v *transform.View) error

func (f planFunc) Plan(ctx context.Context, v *transform.View) error { return f(ctx, v) }

// editLine applies one line, repeated as often as xN demands.
func editLine(ctx context.Context, v *transform.View, line string, read func(name string) string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	count, repeats := strings.CutPrefix(words[0], "x")
	if !repeats {
		return edit(ctx, v, words, read)
	}
	n, err := strconv.Atoi(count)
	for i := 0; i < n && err == nil; i++ {
		numbered := strings.NewReplacer("@@@", fmt.Sprintf("%03d", i))
		err = edit(ctx, v, strings.Fields(numbered.Replace(line))[1:],
			func(name string) string { return numbered.Replace(read(name)) })
	}
	return err
}

func edit(ctx context.Context, v *transform.View, words []string, read func(name string) string) error {
	op, args := words[0], words[1:]
	switch fmt.Sprintf("%s/%d", op, len(args)) {
	case "put/2":
		return v.Put(ctx, []byte(args[0]), []byte(read(args[1])))
	case "object/2", "native/2":
		value, err := stored(read(args[1]), op == "native")
		if err != nil {
			return err
		}
		return v.Put(ctx, []byte(args[0]), value)
	case "set/3":
		return setField(ctx, v, args[0], args[1], args[2])
	case "del/1":
		if e, err := v.Get(ctx, []byte(args[0])); e == nil {
			return errors.Join(err, errors.New("no such record"))
		}
		return v.Delete(ctx, []byte(args[0]))
	case "prune/1":
		return each(ctx, v, args[0], func(e *transform.Entry) error { return v.Delete(ctx, e.Key) })
	case "copy/2":
		return each(ctx, v, args[0], func(e *transform.Entry) error {
			return v.Put(ctx, append([]byte(args[1]), e.Key[len(args[0]):]...), e.Value)
		})
	}
	return errors.New("no such edit")
}

// each calls do for each record below prefix.
func each(ctx context.Context, v *transform.View, prefix string, do func(*transform.Entry) error) error {
	for e, err := range v.Live(ctx, []byte(prefix+"/")) {
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stored encodes a YAML object like kube-apiserver.
func stored(text string, native bool) ([]byte, error) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil || !native {
		return append(data, '\n'), err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	meta := runtime.TypeMeta{}
	if err := json.Unmarshal(data, &meta); err != nil {
		return nil, err
	}
	obj, err := scheme.New(meta.GroupVersionKind())
	if err == nil {
		err = yaml.UnmarshalStrict(data, obj)
	}
	var out bytes.Buffer
	if err == nil {
		err = protobuf.NewSerializer(scheme, scheme).Encode(obj, &out)
	}
	return out.Bytes(), err
}

// setField sets one field of a stored JSON object and creates missing parents.
func setField(ctx context.Context, v *transform.View, key, path, value string) error {
	e, err := v.Get(ctx, []byte(key))
	if e == nil || err != nil {
		return errors.Join(err, errors.New("no such record"))
	}
	obj, format, err := encoding.DecodeObject(e.Value)
	if err != nil {
		return err
	}
	names := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	at := obj
	for i, name := range names {
		name = strings.ReplaceAll(name, "\x00", ".")
		if i == len(names)-1 {
			if value, _, err := encoding.DecodeObject([]byte(`{"x":` + value + `}`)); err == nil {
				at[name] = value["x"]
				break
			}
			return errors.New("the value is no JSON")
		}
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	data, err := encoding.EncodeObject(obj, format)
	if err != nil {
		return err
	}
	return v.Put(ctx, []byte(key), data)
}
