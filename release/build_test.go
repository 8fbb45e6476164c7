package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a person has set for Go does not change what is built.
func TestSettingsOfGo(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(settings, []byte("GOFLAGS=-tags=odd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOENV", settings)
	r := &release{root: ".."}
	flags, err := r.run(t.Context(), r.host().environment(), "go", "env", "GOFLAGS")
	if err != nil || strings.Contains(flags, "odd") {
		t.Error(flags, err)
	}
}
