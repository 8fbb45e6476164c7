package plan

import (
	"time"

	"github.com/etcdshift/etcdshift/transform"
)

// values are the flags of a step; other flags come from the run.
type values struct {
	transform.Values
	own   map[string]any // defaults, by name
	given map[string]any
}

func (s *step) values(run transform.Values) values {
	v := values{run, map[string]any{}, s.flags}
	for _, f := range s.spec.Flags {
		v.own[f.Name] = f.Default
	}
	return v
}

func (v values) IsSet(flag string) bool {
	if _, own := v.own[flag]; !own {
		return v.Values.IsSet(flag)
	}
	return v.given[flag] != nil
}

func (v values) String(flag string) string { return valueOf(v, flag, v.Values.String) }

func (v values) StringSlice(flag string) []string { return valueOf(v, flag, v.Values.StringSlice) }

func (v values) Bool(flag string) bool { return valueOf(v, flag, v.Values.Bool) }

func (v values) Duration(flag string) time.Duration { return valueOf(v, flag, v.Values.Duration) }

func valueOf[T any](v values, flag string, run func(string) T) T {
	value, own := v.own[flag]
	if !own {
		return run(flag)
	}
	if given, is := v.given[flag]; is {
		value = given
	}
	is, _ := value.(T)
	return is
}
