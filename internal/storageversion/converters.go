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
	converterCategory = "Instead of the conversion webhooks of the cluster"
)

var converterFlags = []transform.Flag{
	{Name: webhookFlag, Category: converterCategory, Default: []string{},
		Usage: "`GROUP=URL`: convert objects of GROUP with the webhook at URL; may be repeated"},
	{Name: execFlag, Category: converterCategory, Default: []string{},
		Usage: "`GROUP=COMMAND`: convert objects of GROUP with COMMAND: it reads a ConversionReview and prints " +
			"one; may be repeated"},
	{Name: "conversion-ca", Category: converterCategory,
		Usage: "verify webhooks with the CA certificates in `FILE` (default: caBundle of the " +
			"CustomResourceDefinition)"},
	{Name: "conversion-client-cert", Category: converterCategory,
		Usage: "identify to webhooks with the certificate in `FILE`"},
	{Name: "conversion-client-key", Category: converterCategory,
		Usage: "use the private key in `FILE` for --conversion-client-cert"},
	{Name: "conversion-timeout", Category: converterCategory, Default: 30 * time.Second,
		Usage: "end a call after `TIME`"},
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
