package storageversion

import (
	"context"
	"time"

	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	webhookFlag       = "conversion-webhook"
	execFlag          = "conversion-exec"
	converterCategory = "In place of conversion webhooks"
)

var converterFlags = []transform.Flag{
	{Name: webhookFlag, Category: converterCategory, Default: []string{},
		Usage: "`GROUP=URL`: ask a webhook that runs at URL to convert objects of the group; may be repeated"},
	{Name: execFlag, Category: converterCategory, Default: []string{},
		Usage: "`GROUP=COMMAND`: have a command convert them, which reads a ConversionReview and prints one; may be repeated"},
	{Name: "conversion-ca", Category: converterCategory,
		Usage: "trust webhooks that the certificates in `FILE` vouch for (default: caBundle of the CustomResourceDefinition)"},
	{Name: "conversion-client-cert", Category: converterCategory, Usage: "show webhooks the certificate in `FILE`"},
	{Name: "conversion-client-key", Category: converterCategory, Usage: "its key, in `FILE`"},
	{Name: "conversion-timeout", Category: converterCategory, Default: 30 * time.Second, Usage: "give up a call after `TIME`"},
}

// readConverters makes the converters, by group.
func readConverters(ctx context.Context, a *transform.Args) (map[string]Converter, error) {
	options, err := readWebhookOptions(ctx, a)
	if err != nil {
		return nil, err
	}
	chosen := map[string]*conversion.Converter{}
	for _, kind := range []struct {
		flag, takes string
		start       func(to string) (*conversion.Converter, error)
	}{
		{webhookFlag, "GROUP=URL, such as example.com=https://127.0.0.1:9443", func(to string) (*conversion.Converter, error) {
			options.URL = to
			return conversion.Webhook(options)
		}},
		{execFlag, "GROUP=COMMAND, such as example.com=./convert", func(to string) (*conversion.Converter, error) {
			return conversion.Command(to, options.Timeout)
		}},
	} {
		if err := conversion.Choose(chosen, kind.flag, kind.takes, a.StringSlice(kind.flag), kind.start); err != nil {
			return nil, transform.Usagef("%v", err)
		}
	}
	byGroup := map[string]Converter{}
	for group, converter := range chosen {
		byGroup[group] = converter
	}
	return byGroup, nil
}

// readWebhookOptions reads the flags that all converters share.
func readWebhookOptions(ctx context.Context, a *transform.Args) (o conversion.WebhookOptions, err error) {
	if o.Timeout = a.Duration("conversion-timeout"); o.Timeout <= 0 {
		return o, transform.Usagef("--conversion-timeout is %s; it takes a time such as 30s", o.Timeout)
	}
	for flag, data := range map[string]*[]byte{"conversion-ca": &o.CA, "conversion-client-cert": &o.ClientCert, "conversion-client-key": &o.ClientKey} {
		if a.IsSet(flag) && !a.IsSet(webhookFlag) {
			return o, transform.Usagef("--%s takes --%s", flag, webhookFlag)
		}
		if *data, err = a.ReadFile(ctx, flag); err != nil {
			return o, err
		}
	}
	if a.IsSet("conversion-timeout") && !a.IsSet(webhookFlag) && !a.IsSet(execFlag) {
		return o, transform.Usagef("--conversion-timeout takes --%s or --%s", webhookFlag, execFlag)
	}
	return o, nil
}
