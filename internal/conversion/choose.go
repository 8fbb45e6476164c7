package conversion

import (
	"fmt"
	"strings"
)

// Choose adds the converters that the values GROUP=TO of a flag choose, by group. start makes the
// one of a TO. takes tells in errors what a value looks like.
func Choose(chosen map[string]*Converter, flag, takes string, values []string, start func(to string) (*Converter, error)) error {
	for _, value := range values {
		group, to, ok := strings.Cut(value, "=")
		if !ok || group == "" || to == "" {
			return fmt.Errorf("--%s is %q; it takes %s", flag, value, takes)
		}
		if chosen[group] != nil {
			return fmt.Errorf("--%s: group %q has a converter already", flag, group)
		}
		converter, err := start(to)
		if err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		chosen[group] = converter
	}
	return nil
}
