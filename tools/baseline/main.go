// Baseline does only the minimal work of any tool that copies and checks a snapshot:
//
//	baseline copy IN OUT    copy a file and sync the copy
//	baseline hash IN        one SHA-256 pass
package main

import (
	"crypto/sha256"
	"errors"
	"io"
	"log"
	"os"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "copy":
		err = copyFile(args[1], args[2])
	case len(args) == 2 && args[0] == "hash":
		err = hashFile(args[1])
	default:
		err = errors.New("usage: baseline copy IN OUT, or baseline hash IN")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return errors.Join(out.Sync(), out.Close())
}

func hashFile(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.CopyBuffer(sha256.New(), struct{ io.Reader }{in}, make([]byte, 1<<20))
	return err
}
