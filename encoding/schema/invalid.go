package schema

import "context"

// Invalid lists the fields for which a server would not create obj at this version, or would drop a
// part of it, each with the reason and without values. It changes a copy of obj.
func (v *Version) Invalid(ctx context.Context, obj map[string]any) (fields []string) {
	obj, _ = cloneJSON(obj).(map[string]any)
	dropped, err := v.Coerce(obj)
	if err == nil {
		err = v.Default(obj)
	}
	if err != nil {
		return []string{"the object itself (" + err.Error() + ")"}
	}
	for _, path := range dropped {
		fields = append(fields, path+" (Unknown field)")
	}
	errs := v.Validate(ctx, obj)
	if why := Unchecked(errs); why != "" {
		return append(fields, "the object itself ("+why+")")
	}
	return append(fields, Fields(append(errs, v.validateMeta(obj)...))...)
}
