package cli

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"aead.dev/minisign"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/signature"
	"github.com/etcdshift/etcdshift/transform"
)

func signCommand() *cli.Command {
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign a file; \"verify --key\" checks the signature",
		ArgsUsage: "FILE",
		Description: `minisign -G -p backup.pub -s backup.key
etcdshift sign before.db --key backup.key
etcdshift verify before.db --key backup.pub`,
		UsageText: `Writes FILE.minisig, a signature of the stored bytes of FILE: a snapshot, also a compressed one,
an archive, a page or a report. The signature has the format of minisign, and minisign checks it too. FILE is read
once and not changed.

"minisign -G" creates keys. The passphrase of an encrypted secret key is read from the terminal, or from the first
line of --passphrase-file.

The trusted comment of a signature is signed too. By default it consists of the name of FILE and the time of its last
change, not of the signing: the same FILE, key and flags give the same bytes. The signature file has mode 0600 and
replaces no file.

Exit status: 0 written, 1 failed, 2 usage, 130 interrupted. With any status except 0 nothing was written, unless the
message says that only printing failed.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", Usage: "sign with the secret key in `FILE`"},
			&cli.StringFlag{Name: "signature",
				Usage: "write the signature to `FILE` (default: the name of the argument " +
					"plus .minisig)"},
			&cli.StringFlag{Name: "comment", Usage: "sign the line `TEXT` too, instead of name and time"},
			&cli.StringFlag{Name: "time", Usage: "sign `TIME` (RFC 3339) instead of the time of the last change"},
			&cli.StringFlag{Name: "passphrase-file", Usage: "read the passphrase of the secret key from `FILE`"},
			textOrJSON(), quietFlag(),
		},
		Action: taking(runSign),
	}
}

// signedFile is the document of sign -o json.
type signedFile struct {
	answerHead
	File      signedInput `json:"file"`
	Signature string      `json:"signature"` // the path of its file
	KeyID     string      `json:"keyID"`     // in minisign's form
	Comment   string      `json:"comment"`   // the trusted comment
}

// signedInput identifies the signed bytes.
type signedInput struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

func runSign(c *cli.Context, args []string) error {
	switch {
	case c.String("key") == "":
		return usagef(commandPath(c), "takes --key SECRET; \"minisign -G\" makes one")
	case args[0] == "-":
		return usagef(commandPath(c), "FILE is a file: a signature stands beside it")
	}
	if err := onlyFile(c, "FILE", args[0]); err != nil {
		return err
	}
	comment, err := commentOf(c)
	if err != nil {
		return err
	}
	out := cmp.Or(c.String("signature"), args[0]+signatureEnding)
	f, err := publish.Create(out)
	if err != nil {
		return err
	}
	defer f.Discard()
	key, err := signature.ReadSecret(c.Context, c.String("key"), func() (string, error) { return passphrase(c) })
	if err != nil {
		return err
	}
	return sign(c, args[0], out, f, key, comment)
}

const signatureEnding = ".minisig"

// commentOf returns a function for the trusted comment of a file.
func commentOf(c *cli.Context) (func(*signature.File) string, error) {
	text, at := c.String("comment"), c.String("time")
	if text != "" && at != "" {
		return nil, usagef(commandPath(c), "--time is part of the comment that --comment replaces; give one of them")
	}
	if err := signature.CheckComment(text); err != nil {
		return nil, usagef(commandPath(c), "--comment: %w", err)
	}
	given, err := time.Parse(time.RFC3339, cmp.Or(at, "2006-01-02T15:04:05Z"))
	if err != nil {
		return nil, usagef(commandPath(c), "--time is %q; it takes a time such as 2026-01-31T12:00:00Z", at)
	}
	return func(f *signature.File) string {
		switch {
		case text != "":
			return text
		case at != "":
			return f.Comment(given)
		}
		return f.Comment(f.Time)
	}, nil
}

// sign signs the file at path, and publishes the signature.
func sign(
	c *cli.Context, path, out string, f *publish.File, key minisign.PrivateKey, comment func(*signature.File) string,
) error {
	reading := progress(c).Phase("reading " + path)
	file, err := signature.Read(c.Context, path)
	reading.End()
	if err != nil {
		return err
	}
	text, err := file.Sign(key, comment(file))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := f.File().Write(text); err != nil {
		return err
	}
	if err := f.Publish(); err != nil {
		return err
	}
	doc := signedFile{answerTo("Signature"), signedInput{path, hex.EncodeToString(file.SHA256[:]), file.Bytes}, out,
		signature.KeyID(key.ID()), comment(file)}
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, doc)
	} else {
		_, err = fmt.Fprintf(c.App.Writer, "%s: signed with key %s, sha256 %s\n", render.Printable(out), doc.KeyID,
			doc.File.SHA256)
	}
	return onlyPrinting(err, out)
}

// onlyPrinting is the error of a run that wrote its file but failed to print.
func onlyPrinting(err error, path string) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w (%s: %s)", err, path, transform.Written)
	return &failure{exitFailed, err, "the file was written; only printing failed"}
}

// passphrase returns the passphrase of --passphrase-file, or asks for it.
func passphrase(c *cli.Context) (string, error) {
	if path := c.String("passphrase-file"); path != "" {
		text, err := input.ReadFlag(c.Context, "--passphrase-file", path)
		line, _, _ := strings.Cut(string(text), "\n")
		if line = strings.TrimSuffix(line, "\r"); err == nil && line == "" {
			err = fmt.Errorf("--passphrase-file: the first line of %q is empty", path)
		}
		return line, err
	}
	text, err := askHidden(c, "Passphrase: ")
	if errors.Is(err, errNoTerminal) {
		err = usagef(commandPath(c), "the secret key takes a passphrase, and %w; give --passphrase-file", err)
	}
	return text, err
}
