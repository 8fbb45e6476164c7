package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/conversion"
)

const (
	webhookFlag = "conversion-webhook"
	execFlag    = "conversion-exec"
)

// converterFlags say what stands in for conversion webhooks.
func converterFlags() []cli.Flag {
	const category = "In place of conversion webhooks"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: webhookFlag, Category: category, Usage: "`GROUP=URL`: ask a webhook that runs at URL to convert objects of the group; may be repeated"},
		&cli.StringSliceFlag{Name: execFlag, Category: category, Usage: "`GROUP=COMMAND`: have a command convert them, which reads a ConversionReview and prints one; may be repeated"},
		&cli.StringFlag{Name: "conversion-ca", Category: category,
			Usage: "trust webhooks that the certificates in `FILE` vouch for (default: caBundle of the CustomResourceDefinition)"},
		&cli.StringFlag{Name: "conversion-client-cert", Category: category, Usage: "show webhooks the certificate in `FILE`"},
		&cli.StringFlag{Name: "conversion-client-key", Category: category, Usage: "its key, in `FILE`"},
		&cli.DurationFlag{Name: "conversion-timeout", Category: category, Value: 30 * time.Second, Usage: "give up a call after `TIME`"},
	}
}

// readConverters makes the converters, by group. Those that were started are returned with an error too; they have to be
// closed.
func readConverters(c *cli.Context) (map[string]*conversion.Converter, error) {
	byGroup := map[string]*conversion.Converter{}
	options, err := readWebhookOptions(c)
	if err != nil {
		return byGroup, err
	}
	for _, flag := range []string{webhookFlag, execFlag} {
		for _, word := range c.StringSlice(flag) {
			group, to, ok := strings.Cut(word, "=")
			if !ok || group == "" || to == "" {
				takes := map[string]string{webhookFlag: "GROUP=URL, such as example.com=https://127.0.0.1:9443", execFlag: "GROUP=COMMAND, such as example.com=./convert"}
				return byGroup, usagef(commandPath(c), "--%s is %q; it takes %s", flag, word, takes[flag])
			}
			if byGroup[group] != nil {
				return byGroup, usagef(commandPath(c), "--%s: group %q has a converter already", flag, group)
			}
			converter, err := newConverter(flag, to, options)
			if err != nil {
				return byGroup, usagef(commandPath(c), "--%s: %v", flag, err)
			}
			byGroup[group] = converter
		}
	}
	return byGroup, nil
}

func newConverter(flag, to string, o conversion.WebhookOptions) (*conversion.Converter, error) {
	if flag == execFlag {
		return conversion.Command(conversion.CommandOptions{Command: to, Timeout: o.Timeout})
	}
	o.URL = to
	return conversion.Webhook(o)
}

// readWebhookOptions reads what all converters have in common.
func readWebhookOptions(c *cli.Context) (o conversion.WebhookOptions, err error) {
	if o.Timeout = c.Duration("conversion-timeout"); o.Timeout <= 0 {
		return o, usagef(commandPath(c), "--conversion-timeout is %s; it takes a time such as 30s", o.Timeout)
	}
	for flag, data := range map[string]*[]byte{"conversion-ca": &o.CA, "conversion-client-cert": &o.ClientCert, "conversion-client-key": &o.ClientKey} {
		if !c.IsSet(flag) {
			continue
		}
		if !c.IsSet(webhookFlag) {
			return o, usagef(commandPath(c), "--%s takes --%s", flag, webhookFlag)
		}
		if *data, err = readManifest(c.Context, "--"+flag, c.String(flag)); err != nil {
			return o, err
		}
	}
	if c.IsSet("conversion-timeout") && !c.IsSet(webhookFlag) && !c.IsSet(execFlag) {
		return o, usagef(commandPath(c), "--conversion-timeout takes --%s or --%s", webhookFlag, execFlag)
	}
	return o, nil
}
