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
		Usage: "`GROUP=COMMAND`: have a command convert them, which reads a ConversionReview and prints one; may " +
			"be repeated"},
	{Name: "conversion-ca", Category: converterCategory,
		Usage: "trust webhooks that the certificates in `FILE` vouch for (default: caBundle of the " +
			"CustomResourceDefinition)"},
	{Name: "conversion-client-cert", Category: converterCategory, Usage: "show webhooks the certificate in `FILE`"},
	{Name: "conversion-client-key", Category: converterCategory, Usage: "its key, in `FILE`"},
	{Name: "conversion-timeout", Category: converterCategory, Default: 30 * time.Second,
		Usage: "give up a call after `TIME`"},
}

func readConverters(ctx context.Context, a *transform.Args) (map[string]Converter, error) {
	f := conversion.Flags{Webhooks: a.StringSlice(webhookFlag), Commands: a.StringSlice(execFlag)}
	if f.Timeout = a.Duration("conversion-timeout"); f.Timeout <= 0 {
		return nil, transform.Usagef("--conversion-timeout is %s; it takes a time such as 30s", f.Timeout)
	}
	var err error
	for flag, data := range map[string]*[]byte{
		"conversion-ca": &f.CA, "conversion-client-cert": &f.ClientCert, "conversion-client-key": &f.ClientKey,
	} {
		if a.IsSet(flag) && !a.IsSet(webhookFlag) {
			return nil, transform.Usagef("--%s takes --%s", flag, webhookFlag)
		}
		if *data, err = a.ReadFile(ctx, flag); err != nil {
			return nil, err
		}
	}
	if a.IsSet("conversion-timeout") && !a.IsSet(webhookFlag) && !a.IsSet(execFlag) {
		return nil, transform.Usagef("--conversion-timeout takes --%s or --%s", webhookFlag, execFlag)
	}
	chosen, err := f.Converters()
	if err != nil {
		return nil, transform.Usagef("%v", err)
	}
	byGroup := map[string]Converter{}
	for group, converter := range chosen {
		byGroup[group] = converter
	}
	return byGroup, nil
}
