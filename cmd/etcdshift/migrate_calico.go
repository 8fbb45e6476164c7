package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/calico"
)

// newCalico is the transform behind the command.
func newCalico(o calico.Options) (transform.Transform, error) { return calico.New(o), nil }

func calicoCommand(build func(calico.Options) (transform.Transform, error)) *cli.Command {
	return migration{
		name:  "calico-v3",
		usage: "crd.projectcalico.org/v1 -> projectcalico.org/v3",
		examples: `etcdshift migrate calico-v3 --dry-run before.db after.db
etcdshift migrate calico-v3 --report report.json before.db after.db`,
		text: `Rewrites every Calico record of the v1 group as the v3 custom resources that Calico 3.32 reads without its API server,
with the UIDs, times and owners that clients knew.`,
		codes: calico.Codes(),
		settles: map[string]string{
			"conflict":           "choose with --conflicts keep-v3 or --conflicts take-v1",
			"crd-missing":        "add them with --v3-crds FILE",
			"encrypted":          "open them with --encryption-config FILE",
			"would-be-plaintext": "name a provider that encrypts first for that resource in the --encryption-config",
		},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "uids", Value: "keep", Usage: "`keep|new`: give v3 objects the UIDs that clients saw, or new ones"},
			&cli.StringFlag{Name: "conflicts", Usage: "`keep-v3|take-v1`: which record wins where both are there and differ (default: refuse)"},
			&cli.BoolFlag{Name: "keep-v1", Usage: "leave the v1 records, locked, as the live migration does until its cleanup"},
			&cli.BoolFlag{Name: "set-api-group", Value: true, Usage: "set CALICO_API_GROUP on Calico's components; =false lists it as a step by hand"},
			&cli.StringFlag{Name: "v3-crds", Usage: "add the v3 CRDs of a release manifest `FILE`"},
		},
		build: func(c *cli.Context, _ []string) (transform.Transform, error) {
			choices, err := readCalicoChoices(c)
			if err != nil {
				return nil, err
			}
			return build(choices)
		},
	}.command()
}

func readCalicoChoices(c *cli.Context) (calico.Options, error) {
	choices := calico.Options{KeepV1: c.Bool("keep-v1"), SetAPIGroup: c.Bool("set-api-group")}
	uids, err := oneOf(c, "uids", "keep", "new")
	if err != nil {
		return choices, err
	}
	choices.NewUIDs = uids == "new"
	if c.IsSet("conflicts") {
		word, err := oneOf(c, "conflicts", string(calico.KeepV3), string(calico.TakeV1))
		if err != nil {
			return choices, err
		}
		choices.Conflicts = calico.Conflicts(word)
	}
	choices.Prefixes = readPrefixes(c)
	if c.IsSet("v3-crds") {
		choices.V3CRDs, err = readManifest(c.Context, "--v3-crds", c.String("v3-crds"))
		choices.V3CRDsPath = c.String("v3-crds")
	}
	return choices, err
}

// maxManifest is how long a manifest may be, in bytes. Calico's CRDs of one release are less than 2 MiB.
const maxManifest = 64 << 20

// readManifest reads the file that a flag names.
func readManifest(ctx context.Context, flag, path string) ([]byte, error) {
	data, _, err := input.ReadFile(ctx, path, maxManifest)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case len(data) == 0:
		return nil, fmt.Errorf("%s: %q is empty", flag, path)
	}
	return data, nil
}
