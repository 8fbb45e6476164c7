package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/snapshot"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "find problems that will appear after a restore",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift doctor before.db
etcdshift doctor --kubernetes 1.36 --etcd 3.6.16 --quota 4Gi before.db
etcdshift doctor --for new-machines before.db
etcdshift doctor -o sarif before.db > findings.sarif`,
		UsageText: `Checks the file, every record, and the references between objects: values that do not decode,
versions and owners that are gone, webhooks ("failed calling webhook") and APIServices that will block a restored
cluster. Each finding has a level, a stable code for "etcdshift explain", a key and a remedy. A shard of kcp gets the
findings that "kcp list" has for this one file. Facts that are not in the file are not guessed. With --for
new-machines it finds the objects that depend on the machines of the cluster: Nodes, volumes, Pods, tokens,
addresses. With --validate it finds built-in objects whose next update an API server will refuse. An archive is not
restored and gets no findings about a restore.

Exit status: 0 no finding of the level of --fail-on or worse, 1 findings, 2 usage, 5 could not check, 130
interrupted.`,
		Flags: readFlags("decrypt values with", append(doctorFlags(),
			outputFlag("text", "json", "sarif (2.1.0)", "junit"))...),
		Action: checking(runDoctor),
	}
}

// doctorFlags select findings, and those that decide the exit status.
func doctorFlags() []cli.Flag {
	return []cli.Flag{
		oneOf(&cli.StringFlag{Name: "fail-on", Value: "error",
			Usage: "exit with status 1 for findings of `LEVEL` or worse: error or warning"}, "error", "warning"),
		newCodesFlag("ignore", "omit findings with `CODE`; may be repeated", "a finding",
			finding.Names(doctor.Codes()...)),
		oneOf(&cli.StringFlag{Name: "for", Usage: "also find problems in another `PLACE`: new-machines"},
			"new-machines"),
		&cli.BoolFlag{Name: "validate", Usage: "validate built-in objects like an API server of Kubernetes 1.37"},
		&cli.StringFlag{Name: "quota", Usage: "check for an etcd with the quota `BYTES` (--quota-backend-bytes), " +
			"such as 8Gi"},
		&cli.StringFlag{Name: "kubernetes",
			Usage: "check for an API server of Kubernetes `VERSION`, such as 1.36"},
		&cli.StringFlag{Name: "etcd", Usage: "check for a restore into etcd `VERSION`, such as 3.5.21"},
	}
}

// diagnosis is the document of doctor -o json.
type diagnosis struct {
	documentHead
	report.Diagnosis
}

func runDoctor(c *cli.Context, args []string) error {
	options, err := doctorOptions(c)
	if err != nil {
		return err
	}
	in, found, err := examine(c, args[0], options)
	if err != nil {
		return err
	}
	e := examined{"doctor", in, doctor.Codes(), found, unchecked(options, found)}
	err = e.print(c, diagnosis{document("Diagnosis", in), report.Diagnosed(found)}, func(*render.Page) {})
	return cmp.Or(err, e.verdict(c, args[0], explainCode+"; --ignore CODE leaves it out"))
}

// etcdRelease reads --etcd; "" if absent.
func etcdRelease(c *cli.Context) (string, error) {
	release := c.String("etcd")
	var major, minor int
	n, _ := fmt.Sscanf(strings.TrimPrefix(release, "v"), "%d.%d", &major, &minor)
	if release != "" && (n != 2 || major < 3) {
		return "", usagef(commandPath(c), "--etcd is %q; it takes a release of etcd 3, such as 3.5.21", release)
	}
	return release, nil
}

func doctorOptions(c *cli.Context) (o doctor.Options, err error) {
	o.Ignore, o.NewMachines = c.StringSlice("ignore"), c.String("for") == "new-machines"
	o.Validate = c.Bool("validate")
	if c.IsSet("quota") {
		quantity, err := resource.ParseQuantity(c.String("quota"))
		if o.Quota = quantity.Value(); err != nil || o.Quota <= 0 {
			return o, usagef(commandPath(c), "--quota is %q; it takes a number of bytes, such as 8Gi",
				c.String("quota"))
		}
	}
	if o.Etcd, err = etcdRelease(c); err != nil {
		return o, err
	}
	o.Keys = c.IsSet(encryptionConfig)
	if text := c.String("kubernetes"); text != "" {
		if o.Kubernetes, err = native.ParseRelease(text); err != nil {
			return o, usagef(commandPath(c), "--kubernetes is %q; %v", text, err)
		}
	}
	return o, nil
}

// examine checks the file at path. A damaged file gets a report too.
func examine(c *cli.Context, path string, options doctor.Options) (in inputInfo, report *finding.Report, err error) {
	reading := progress(c).Phase("examining " + path)
	defer reading.End()
	o, err := openSnapshot(c, path, encryptionConfig)
	if snapshot.IsDamage(err) {
		return inputInfo{Path: path}, doctor.Damaged(err, options), nil
	}
	if err != nil {
		return in, nil, err
	}
	defer o.Close()
	reading.Of(part(1, 5, o))
	switch archived, damage, err := openArchive(c.Context, o.Snapshot()); {
	case err != nil:
		return in, nil, err
	case damage != nil:
		return inputInfo{Path: path}, doctor.Damaged(damage, options), nil
	default: // archives need no restore checks
		options.Archive = archived != ""
	}
	err = o.Snapshot().Guard(func() error {
		report, err = doctor.Examine(c.Context, o.Reader, options)
		if err != nil || report.Counts[doctor.CodeDamaged] > 0 { // a damaged file has no other findings
			return err
		}
		return checkPrefixes(c, nil, o)
	})
	if err != nil {
		return in, nil, err
	}
	in, err = o.input(c.Context)
	if errors.Is(err, snapshot.ErrDamaged) { // already in the report
		err = nil
	}
	return in, report, err
}

// openArchive describes an archive; "" for any other file and for a damaged file, whose damage
// doctor reports. damage means that the archive was changed after its creation.
func openArchive(ctx context.Context, s *snapshot.Snapshot) (text string, damage, err error) {
	clusters, err := archive.OpenChecked(ctx, s)
	part := (*archive.PartManifest)(nil)
	if errors.Is(err, archive.ErrKind) {
		part, err = archive.OpenPart(ctx, s)
	}
	switch {
	case errors.Is(err, archive.ErrNotArchive), snapshot.IsDamage(err):
		return "", nil, nil
	case errors.Is(err, archive.ErrDamaged):
		return "", err, nil
	case err != nil:
		return "", nil, err
	case part != nil:
		return partText(part), nil, nil
	}
	return archiveText(clusters), nil, nil
}

// unchecked returns a function that tells why a code was not checked, "" for a checked code.
func unchecked(o doctor.Options, report *finding.Report) func(*finding.Code) string {
	return func(code *finding.Code) string {
		switch {
		case slices.Contains(o.Ignore, code.Name):
			return "left out with --ignore"
		case report.Counts[doctor.CodeDamaged] > 0:
			return "not checked: the file is damaged"
		case !o.NewMachines && slices.Contains(machines.Codes(), code):
			return "not asked for: --for new-machines"
		}
		return ""
	}
}
