package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		Usage:     "find what will hurt after a restore",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift doctor before.db
etcdshift doctor --etcd 3.5.21 --quota 4Gi --fail-on warning before.db
etcdshift doctor --for new-machines before.db
etcdshift doctor -o sarif before.db > findings.sarif`,
		UsageText: `Checks the file, every record, and the references between objects: values that do not decode, versions and owners that are gone,
webhooks ("failed calling webhook") and APIServices that will block a restored cluster. Each finding has a level, a stable code
for "etcdshift explain", a key and a remedy. A shard of kcp gets the findings that "kcp list" has for this one file. Facts
that are not in the file are not guessed. With --for new-machines it finds what is tied to the machines of the cluster: Nodes,
volumes, Pods, tokens, addresses. An archive of "kcp extract" gets no findings about a restore: it is not restored.

Exit status: 0 no finding of the level of --fail-on or worse, 1 findings, 2 usage, 5 could not check, 130 interrupted.`,
		Flags:  readFlags("decrypt values with", append(doctorFlags(), outputFlag("text", "json", "sarif (2.1.0)", "junit"))...),
		Action: checking(runDoctor),
	}
}

// doctorFlags choose findings, and which of them decide the exit status.
func doctorFlags() []cli.Flag {
	return []cli.Flag{
		oneOf(&cli.StringFlag{Name: "fail-on", Value: "error",
			Usage: "exit with status 1 where a finding is of `LEVEL` or worse: error or warning"}, "error", "warning"),
		newCodesFlag("ignore", "leave out findings with `CODE` (repeatable)", "a finding", finding.Names(doctor.Codes()...)),
		oneOf(&cli.StringFlag{Name: "for", Usage: "also find what hurts in another `PLACE`: new-machines"}, "new-machines"),
		&cli.StringFlag{Name: "quota", Usage: "check for an etcd with the quota `BYTES` (--quota-backend-bytes), such as 8Gi"},
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
	in, report, err := examine(c, args[0], options)
	if err == nil {
		err = printDiagnosis(c, in, report, options)
	}
	if err != nil {
		return err
	}
	if level := c.String("fail-on"); report.AtLeast(finding.Level(level)) {
		found := phrase.Count(report.Count(finding.Error), "error")
		if level == "warning" {
			found += ", " + phrase.Count(report.Count(finding.Warning), "warning")
		}
		return &failure{exitFound, fmt.Errorf("%s: %s found", args[0], found), "\"etcdshift explain CODE\" explains a code; --ignore CODE leaves it out"}
	}
	return nil
}

func doctorOptions(c *cli.Context) (o doctor.Options, err error) {
	o.Ignore, o.NewMachines = c.StringSlice("ignore"), c.String("for") == "new-machines"
	if c.IsSet("quota") {
		quantity, err := resource.ParseQuantity(c.String("quota"))
		if o.Quota = quantity.Value(); err != nil || o.Quota <= 0 {
			return o, usagef(commandPath(c), "--quota is %q; it takes a number of bytes, such as 8Gi", c.String("quota"))
		}
	}
	if o.Etcd = c.String("etcd"); o.Etcd != "" {
		var major, minor int
		if n, _ := fmt.Sscanf(strings.TrimPrefix(o.Etcd, "v"), "%d.%d", &major, &minor); n != 2 {
			return o, usagef(commandPath(c), "--etcd is %q; it takes a release, such as 3.5.21", o.Etcd)
		}
	}
	o.Keys = c.IsSet(encryptionConfig)
	return o, nil
}

// examine checks the file at path. A damaged file has a report too.
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
	switch m, damage, err := openArchive(c.Context, o.Snapshot()); {
	case err != nil:
		return in, nil, err
	case damage != nil:
		return inputInfo{Path: path}, doctor.Damaged(damage, options), nil
	default: // no shard is restored from an archive
		options.Archive = m != nil
	}
	err = o.Snapshot().Guard(func() error {
		report, err = doctor.Examine(c.Context, o.Reader, options)
		if err != nil || report.Counts[doctor.CodeDamaged] > 0 { // then nothing else is told
			return err
		}
		return checkPrefixes(c, nil, o)
	})
	if err != nil {
		return in, nil, err
	}
	in, err = o.input(c.Context)
	if errors.Is(err, snapshot.ErrDamaged) { // the report tells
		err = nil
	}
	return in, report, err
}

// openArchive returns the manifest of an archive, nil for any other file and for a damaged one,
// whose damage doctor finds. damage means that the archive is not as it was made.
func openArchive(ctx context.Context, s *snapshot.Snapshot) (m *archive.Manifest, damage, err error) {
	switch m, err = archive.OpenChecked(ctx, s); {
	case errors.Is(err, archive.ErrNotArchive), snapshot.IsDamage(err):
		return nil, nil, nil
	case errors.Is(err, archive.ErrDamaged):
		return nil, err, nil
	case err != nil:
		return nil, nil, err
	}
	return m, nil, nil
}

func printDiagnosis(c *cli.Context, in inputInfo, found *finding.Report, options doctor.Options) error {
	errors, warnings, infos := found.Count(finding.Error), found.Count(finding.Warning), found.Count(finding.Info)
	switch c.String("output") {
	case "json":
		return render.JSON(c.App.Writer, diagnosis{document("Diagnosis", in), report.Diagnosed(found)})
	case "sarif":
		return render.JSON(c.App.Writer, toSARIF(in, doctor.Codes(), found))
	case "junit":
		return printJUnit(c.App.Writer, in, found, finding.Level(c.String("fail-on")), unchecked(options, found))
	}
	p := render.NewPage(render.Folding(c.App.Writer))
	printFindings(p, found)
	p.Printf("%s, %s, %s\n", phrase.Count(errors, "error"), phrase.Count(warnings, "warning"), phrase.Count(infos, "info"))
	return p.Flush()
}

// printFindings prints findings by code, with the remedy.
func printFindings(p *render.Page, found *finding.Report) {
	for findings := range grouped(found.Findings, func(f finding.Finding) *finding.Code { return f.Code }) {
		code := findings[0].Code
		p.Printf("%s %s: %s\n", findings[0].Level, code.Name, code.Title)
		most := 5
		switch {
		case strings.HasPrefix(code.Name, "webhook-"): // each one may stop the cluster
			most = len(findings)
		case code.Level == finding.Error:
			most = mostListed
		}
		lines := stream.Mapped(findings, func(f finding.Finding) string { return about(f.Reason, f.Key) })
		p.First("   ", lines, most, found.Counts[code], "; -o json lists them all")
		p.Printf("   -> %s\n\n", code.Remedy)
	}
}

// about puts subjects, such as a file and a key, before a sentence. Empty ones are left out.
func about(text string, subjects ...string) string {
	var names []string
	for _, s := range subjects {
		if s != "" {
			names = append(names, render.Printable(s))
		}
	}
	text = render.Printable(text)
	if names == nil {
		return text
	}
	return strings.Join(names, " ") + ": " + text
}

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// toSARIF returns a report with findings of codes as SARIF 2.1.0 (OASIS, sarif-schema-2.1.0.json).
func toSARIF(in inputInfo, codes []*finding.Code, report *finding.Report) any {
	type object = map[string]any
	text := func(s string) object { return object{"text": s} }
	rules := stream.Mapped(codes, func(code *finding.Code) object {
		return object{
			"id": code.Name, "shortDescription": text(code.Title), "help": text(code.Remedy),
			"defaultConfiguration": object{"level": sarifLevel(code.Level)},
		}
	})
	file := object{"location": object{"uri": toURI(in.Path)}, "length": in.Bytes}
	if in.SHA256 != "" {
		file["hashes"] = object{"sha-256": in.SHA256}
	} else {
		file["length"] = -1 // not known, as the schema says it
	}
	results := []object{}
	for _, f := range report.Findings {
		at := object{"physicalLocation": object{"artifactLocation": object{"uri": toURI(in.Path), "index": 0}}}
		if f.Key != "" {
			at["logicalLocations"] = []object{{"fullyQualifiedName": f.Key, "kind": "object"}}
		}
		result := object{
			"ruleId": f.Code.Name, "ruleIndex": slices.Index(codes, f.Code), "level": sarifLevel(f.Level), "message": text(f.Reason), "locations": []object{at},
		}
		if f.Objects > 0 {
			result["properties"] = object{"objects": f.Objects}
		}
		results = append(results, result)
	}
	driver := object{
		"name": tool().Name, "version": tool().Version, "informationUri": "https://github.com/etcdshift/etcdshift", "rules": rules,
	}
	run := object{"tool": object{"driver": driver}, "artifacts": []object{file}, "results": results, "columnKind": "utf16CodeUnits"}
	return object{"$schema": sarifSchema, "version": "2.1.0", "runs": []object{run}}
}

// toURI returns a path as a URI reference. A relative path stays relative.
func toURI(path string) string {
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	}
	return (&url.URL{Path: filepath.ToSlash(path)}).String()
}

func sarifLevel(l finding.Level) string {
	if l == finding.Info {
		return "note"
	}
	return string(l)
}
