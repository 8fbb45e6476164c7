package schema

import (
	"context"
	"errors"
)

// Invalid lists the fields for which a server would not create obj at this version, or would drop a
// part of obj, each with the reason and without values. err is the reason why obj could not be
// checked. obj stays unchanged.
func (v *Version) Invalid(ctx context.Context, obj map[string]any) (fields []string, err error) {
	obj, _ = cloneJSON(obj).(map[string]any)
	dropped, err := v.Coerce(obj)
	if err == nil {
		err = v.Default(obj)
	}
	if err != nil {
		return nil, err
	}
	for _, path := range dropped {
		fields = append(fields, path+" (Unknown field)")
	}
	errs := v.Validate(ctx, obj)
	if why := Unchecked(errs); why != "" {
		return fields, errors.New(why)
	}
	return append(fields, Fields(append(errs, v.validateMeta(obj)...))...), nil
}
