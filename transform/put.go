package transform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// ObjectCodes returns the codes that [View.PutObject] and [View.CopyObject] report.
func ObjectCodes() []*finding.Code {
	return []*finding.Code{
		CodeUnknownFields, CodeInvalidObject, CodeWouldBePlaintext, finding.Undecodable, finding.Encrypted,
	}
}

// PutObject stages content in place of the content of o, in the stored format of o. JSON keeps the
// bytes of unchanged fields. Metadata of any kind is edited on the wire; other fields of protobuf
// are edited only if this build knows every field of the value. The content is stored as
// [AsUpdated] returns it. metadata.resourceVersion and metadata.generation are ignored; the
// generation grows as by a server's update.
//
// staged is false if the content does not change, and after a finding of [ObjectCodes]. With the
// cluster IPs that a Service loses, their IPAddress objects are deleted.
func (v *View) PutObject(ctx context.Context, o *inspect.Object, content map[string]any) (staged bool, err error) {
	value := v.rewrite(ctx, o, o.Parsed, content)
	if value == nil {
		return false, nil
	}
	if staged, err = v.Derive(ctx, o.Key, o.Key, value); staged && o.Type.Name() == "services" {
		after := AsUpdated(o, content)
		v.gained.add(o, after)
		err = releaseAddresses(ctx, v, o, after)
	}
	return staged, err
}

// CopyObject is PutObject at another key, for an object with another name, in place of any record
// at that key. The new record has the lease of o.
func (v *View) CopyObject(
	ctx context.Context, o *inspect.Object, key []byte, content map[string]any,
) (staged bool, err error) {
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return false, err
	}
	parsed, _, err := layouts.Parse(key)
	if err != nil {
		return false, err
	}
	value := v.rewrite(ctx, o, parsed, content)
	if value == nil {
		return false, nil
	}
	if staged, err = v.Derive(ctx, o.Key, key, value); !staged || err != nil {
		return false, err
	}
	return true, v.plan.attach(key, o.Lease)
}

// rewrite returns the value of o with another content, to be stored at key; nil for no change, or
// after a finding.
func (v *View) rewrite(ctx context.Context, o *inspect.Object, key keys.Key, content map[string]any) []byte {
	meter := v.budget.Meter()
	value, wrong := Rewritten(bounded.WithMeter(ctx, meter), o, key, content)
	meter.Take() // Rewritten reports an exhausted budget: nothing runs in parallel
	if wrong != nil {
		v.Raise(string(o.Key), wrong)
		return nil
	}
	return value
}

// Rewritten returns the value that [View.PutObject] stages, nil for no change, or a finding, for an
// object that may move to another key. Rewritten needs no view: many calls may run in parallel. For
// an object that cannot be checked, Rewritten returns both value and finding.
func Rewritten(
	ctx context.Context, o *inspect.Object, key keys.Key, content map[string]any,
) (value []byte, wrong *finding.Finding) {
	if o.Err != nil {
		return nil, Unreadable(o.Err)
	}
	before, after := stored(o.Content), stored(AsUpdated(o, content))
	keepGeneration(before, after)
	if reflect.DeepEqual(before, after) {
		return nil, nil
	}
	raiseGeneration(o, before, after)
	value, err := encodeAs(o, before, after)
	if err == nil {
		err = fits(ctx, o, key, before, after, value)
	}
	switch {
	case errors.Is(err, native.ErrUnknownFields), errors.Is(err, native.ErrUnknownKind),
		errors.Is(err, encoding.ErrUnknownFormat):
		return nil, CodeUnknownFields.Because("%v", err)
	case errors.Is(err, errUnchecked):
		return value, CodeInvalidObject.Because("%v", err)
	case err != nil:
		return nil, CodeInvalidObject.Because("%v", err)
	}
	return value, nil
}

// stored returns content without resourceVersion, which is not part of a stored value.
func stored(content map[string]any) map[string]any {
	content = maps.Clone(content)
	if metadata, is := content["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		content["metadata"] = metadata
	}
	return content
}

func encodeAs(o *inspect.Object, before, after map[string]any) ([]byte, error) {
	parsed, err := o.ParseValue()
	if err != nil {
		return nil, err
	}
	if parsed.Format != encoding.FormatProtobuf {
		if o.Type.CRD == nil && native.Unfit(parsed, before) == nil {
			if err := native.Unfit(parsed, after); err != nil {
				return nil, err
			}
		}
		return encoding.Set(o.Value, after)
	}
	if value, done := editMetadata(o.Value, before, after); done && !emptyBundle(o) {
		return value, nil
	}
	raw, err := native.Encode(parsed, after)
	if err != nil {
		return nil, err
	}
	return encoding.WithMessage(o.Value, raw)
}

// editMetadata edits a protobuf value on the wire and keeps its other fields. done is false if more
// than metadata changes, or a metadata field that [encoding.Set] does not edit.
func editMetadata(value []byte, before, after map[string]any) (_ []byte, done bool) {
	if changed := differing(before, after); len(changed) != 1 || changed[0] != "metadata" {
		return nil, false
	}
	was, _ := before["metadata"].(map[string]any)
	is, _ := after["metadata"].(map[string]any)
	for _, field := range differing(was, is) {
		var err error
		if value, err = encoding.Set(value, is[field], "metadata", field); err != nil {
			return nil, false
		}
	}
	return value, true
}

// differing returns the fields in which two objects differ, sorted.
func differing(a, b map[string]any) (fields []string) {
	for field := range a {
		if !reflect.DeepEqual(a[field], b[field]) {
			fields = append(fields, field)
		}
	}
	for field := range b {
		if _, both := a[field]; !both {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

var errKind = errors.New("apiVersion and kind of a built-in object cannot change")

// fits returns why a server would refuse the object after at key, ignoring reasons that apply to
// before.
func fits(ctx context.Context, o *inspect.Object, key keys.Key, before, after map[string]any, value []byte) error {
	if err := CheckValue(key, value); err != nil {
		return err
	}
	metadata, _ := after["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if name != key.Name || namespace != key.Namespace {
		return fmt.Errorf("its key names %q in namespace %q, its metadata %q in %q", key.Name, key.Namespace,
			name, namespace)
	}
	invalid := func(content map[string]any) ([]string, error) {
		return schema.Fields(schema.ValidateMeta(content, key.Namespace != "")), nil
	}
	switch changed := differing(before, after); {
	case o.Type.CRD != nil:
		apiVersion, _ := after["apiVersion"].(string)
		version, err := o.Type.CRD.Version(apiVersion[strings.LastIndex(apiVersion, "/")+1:])
		if err != nil {
			return err
		}
		meta := invalid
		invalid = func(content map[string]any) ([]string, error) {
			wrong, err := version.Invalid(ctx, content)
			if err != nil && slices.Equal(changed, []string{"metadata"}) { // servers ignore errors of unchanged fields
				return meta(content)
			}
			return wrong, err
		}
	case slices.Contains(changed, "apiVersion") || slices.Contains(changed, "kind"):
		return errKind
	case key.Identity != "" || key.Custom: // of kcp, by schemas of its own
	default:
		wrong, err := native.Refused(before, after)
		switch {
		case errors.Is(err, native.ErrUncheckable),
			err != nil && !errors.Is(err, native.ErrUnknownKind) && !slices.Equal(changed, []string{"metadata"}):
			return fmt.Errorf("%w: %w", errUnchecked, err)
		case len(wrong) > 0:
			return fmt.Errorf("an API server refuses it: %s", finding.List(wrong))
		case err == nil:
			return nil
		}
	}
	return newlyInvalid(invalid, before, after)
}

// errUnchecked is for an object that takes too long to validate, or has a schema that no server
// accepts, or makes the validation of Kubernetes fail.
var errUnchecked = errors.New("it cannot be checked")

// newlyInvalid returns why after is invalid, ignoring reasons that apply to before.
func newlyInvalid(invalid func(map[string]any) ([]string, error), before, after map[string]any) error {
	wrong, err := invalid(after)
	if len(wrong) > 0 {
		had, _ := invalid(before)
		wrong = slices.DeleteFunc(wrong, func(field string) bool { return slices.Contains(had, field) })
	}
	switch {
	case len(wrong) > 0:
		return fmt.Errorf("it does not fit the schema: %s", finding.List(wrong))
	case err != nil:
		return fmt.Errorf("%w: %w", errUnchecked, err)
	}
	return nil
}
