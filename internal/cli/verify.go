package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/internal/signature"
	"github.com/etcdshift/etcdshift/snapshot"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check that a snapshot can be restored",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift verify before.db
etcdshift verify --encryption-config encryption.yaml before.db
etcdshift verify --key backup.pub before.db
etcdshift verify -o json before.db && etcdutl snapshot restore before.db`,
		UsageText: `Reads the whole file: digest, pages, the free list, the order of records, the numbers of each
record against the record before it, and every lease, alarm, user, role, member and version that etcd decodes when it
starts. "etcdutl snapshot restore" checks only the digest. With --encryption-config, verify also checks that the keys
decrypt every encrypted value. For an archive, it also checks that the archive matches its manifest.

With --key, verify first checks that the key has signed the file, with the signature FILE.minisig of "sign" or of
minisign. A signature by another key, of other bytes or with another comment is a finding. Without a signature, or
with one in minisign's legacy format, the exit status is 5. For pages, reports and plans (.html, .md, .json, .jsonl,
.sarif, .xml, .yaml) and SHA256SUMS, verify checks only the signature.

Findings: "fatal": etcdutl or etcd cannot use the file; "lies": etcd starts and serves wrong data; "warning": etcd
works.

Exit status: 0 nothing found, 1 damage found, 2 usage, 5 could not check, 130 interrupted.`,
		Flags: readFlags("check that every encrypted value can be decrypted with",
			append(signatureFlags(), textOrJSON())...),
		Action: checking(runVerify),
	}
}

// verification is the document of verify -o json.
type verification struct {
	documentHead        // if the file could not be opened, input has only the path
	Path         string `json:"path"`
	report.Verification
	Classes []snapshot.Class `json:"classes"`           // of the findings, in their order
	Class   snapshot.Class   `json:"class,omitempty"`   // the worst one, including warnings
	Archive string           `json:"archive,omitempty"` // the logical cluster of an archive
	// Part is the selection of an archive of a part.
	Part *archive.Selection `json:"part,omitempty"`
	// Signature is the result of --key; absent without --key.
	Signature *checkedSignature `json:"signature,omitempty"`
	file      *signature.File   // whose signature was checked
	text      string            // description of the archive
	lines     []string          // the findings, for a person
}

// found adds a finding.
func (v *verification) found(class snapshot.Class, text string) {
	v.Findings, v.Classes = append(v.Findings, text), append(v.Classes, class)
	v.worst(class)
	if class != snapshot.Warning {
		text = string(class) + ": " + text
	}
	v.lines = append(v.lines, text)
}

// worst sets v.Class to class if class is worse.
func (v *verification) worst(class snapshot.Class) {
	for _, one := range []snapshot.Class{snapshot.Fatal, snapshot.Lies, snapshot.Warning} {
		if v.Class == one || class == one {
			v.Class = one
			return
		}
	}
}

func runVerify(c *cli.Context, args []string) error {
	v := verification{documentHead: document("Verification", inputInfo{Path: args[0]}), Path: args[0]}
	v.Findings, v.Classes = []string{}, []snapshot.Class{}
	unsigned, err := checkSignature(c, &v)
	if err != nil {
		return err
	}
	damage, err := verifyContent(c, &v)
	if err != nil {
		return errors.Join(inFiles(unsigned, args[0]), err)
	}
	damage = cmp.Or(unsigned, damage)
	v.Sound = damage == nil
	warn(c, v.Warnings...)
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, v)
	} else {
		err = printVerification(c, v)
	}
	switch {
	case err != nil:
		return err
	case unsigned != nil:
		err = fmt.Errorf("%s has no good signature: %d found", args[0], len(v.Findings))
	case errors.Is(damage, encoding.ErrEncrypted):
		err = fmt.Errorf("%s: %s that no key of the configuration decrypts", args[0],
			phrase.Count(len(v.Findings), "value"))
	case damage != nil:
		err = fmt.Errorf("%s is damaged: %d found", args[0], len(v.Findings))
	default:
		return nil
	}
	return &failure{exitFound, err, hintFor(damage)}
}

// verifyContent is verifyFile, except for pages and reports.
func verifyContent(c *cli.Context, v *verification) (damage, err error) {
	if v.Signature != nil && isReport(v.Path) {
		verifyReport(v)
		return nil, nil
	}
	damage, err = verifyFile(c, v)
	return damage, cmp.Or(err, sameFile(v))
}

// verifyFile fills in v and returns the first damage. An error means that v could not be checked.
func verifyFile(c *cli.Context, v *verification) (damage, err error) {
	reading := progress(c).Phase("verifying " + v.Path)
	defer reading.End()
	o, err := openFile(c, v.Path, encryptionConfig)
	if snapshot.IsDamage(err) {
		v.found(snapshot.ClassOf(err), err.Error())
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer o.Close()
	reading.Of(part(0, 0, o))
	s := o.Snapshot()
	v.Warnings = s.Warnings()
	for found := range snapshot.Verify(c.Context, s) {
		if !snapshot.IsDamage(found) {
			return nil, found
		}
		damage = cmp.Or(damage, found)
		v.found(snapshot.ClassOf(found), found.Error())
	}
	for odd := range snapshot.Odd(c.Context, s) {
		if len(v.Warnings) == mostListed {
			v.Warnings = append(v.Warnings, "... and more")
			break
		}
		v.Warnings = append(v.Warnings, odd.Error())
		v.worst(snapshot.ClassOf(odd))
	}
	if err := c.Context.Err(); err != nil {
		return nil, err
	}
	if damage == nil {
		if damage, err = verifyArchive(c.Context, s, v); err != nil {
			return nil, err
		}
	}
	v.Input, _ = o.input(c.Context) // errors were found above
	if damage != nil {              // values of a damaged file are not trusted
		return damage, nil
	}
	o.Reader = o.Below(readPrefixes(c)...)
	err = s.Guard(func() error {
		if o.transformers != nil {
			damage, err = decryptAll(c.Context, o.Reader, v)
		}
		return checkPrefixes(c, err, o)
	})
	return damage, err
}

// verifyArchive checks an archive against its manifest. It ignores any other file.
func verifyArchive(ctx context.Context, s *snapshot.Snapshot, v *verification) (damage, err error) {
	m, err := archive.OpenChecked(ctx, s)
	if errors.Is(err, archive.ErrNotArchive) {
		return nil, nil
	}
	if m != nil {
		v.Archive, v.text = m.Name, archiveText(m)
	}
	if errors.Is(err, archive.ErrKind) {
		var part *archive.PartManifest
		if part, err = archive.OpenPart(ctx, s); part != nil {
			v.Part, v.text = &part.Selection, partText(part)
		}
	}
	if errors.Is(err, archive.ErrDamaged) {
		v.found(snapshot.Warning, err.Error())
		return err, nil
	}
	return nil, err
}

// decryptAll lists the undecryptable values, and returns the reason of the first.
func decryptAll(ctx context.Context, r *inspect.Reader, v *verification) (undecryptable, err error) {
	for e, err := range r.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if e.Undecryptable == nil {
			continue
		}
		if !errors.Is(e.Undecryptable, encoding.ErrEncrypted) { // a KMS plugin that stopped answering
			return nil, e.Undecryptable
		}
		undecryptable = cmp.Or(undecryptable, e.Undecryptable)
		v.found(snapshot.Warning, fmt.Sprintf("%s: %v", e.Key, e.Undecryptable))
	}
	return undecryptable, nil
}

func printVerification(c *cli.Context, v verification) error {
	p := render.NewPage(render.Folding(c.App.Writer))
	switch {
	case v.Sound && isReport(v.Path): // a report with a good signature
	case v.Sound && v.text != "":
		p.Printf("%s is sound: an %s, as it was made\n", v.Path, v.text)
	case v.Sound:
		p.Printf("%s is sound\n", v.Path)
	}
	if v.Signature != nil && v.Signature.Good {
		p.Printf("%s is %s\n", v.Path, signedBy(v.Signature))
	}
	p.First("", v.lines, mostListed, len(v.lines), "; -o json lists them all")
	return p.Flush()
}

func partText(m *archive.PartManifest) string {
	return "archive of a part of a snapshot, with " + phrase.Count(m.Total.Keys, "key")
}

func archiveText(m *archive.Manifest) string {
	text := "archive of logical cluster " + m.Name
	if path := m.Cluster(m.Name).Path; path != "" {
		text += " (" + path + ")"
	}
	if n := len(m.Clusters) - 1; n > 0 {
		text += fmt.Sprintf(" and %d below it", n)
	}
	return text
}
