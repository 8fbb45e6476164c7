package conversion

import (
	"errors"
	"fmt"
	"strings"
)

// Flags are the values of --conversion-webhook and --conversion-exec, and of the related flags.
type Flags struct {
	Webhooks       []string // GROUP=URL
	Commands       []string // GROUP=COMMAND
	WebhookOptions          // with the URL of each webhook
}

// Converters returns the converters by group. An error names the flag.
func (f Flags) Converters() (map[string]*Converter, error) {
	chosen := map[string]*Converter{}
	choose := func(flag, takes string, values []string, start func(to string) (*Converter, error)) error {
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
	webhook := func(to string) (*Converter, error) {
		f.URL = to
		return Webhook(f.WebhookOptions)
	}
	command := func(to string) (*Converter, error) { return Command(to, f.Timeout) }
	err := choose("conversion-webhook", "GROUP=URL, such as example.com=https://127.0.0.1:9443", f.Webhooks, webhook)
	return chosen, errors.Join(err, choose("conversion-exec", "GROUP=COMMAND, such as example.com=./convert",
		f.Commands, command))
}
