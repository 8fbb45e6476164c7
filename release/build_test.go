package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A user's Go settings do not change the build.
func TestSettingsOfGo(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "env")
	write(t, settings, []byte("GOFLAGS=-tags=odd\n"))
	t.Setenv("GOENV", settings)
	r := &release{root: ".."}
	flags, err := r.run(t.Context(), host.environment(), "go", "env", "GOFLAGS")
	if err != nil || strings.Contains(flags, "odd") {
		t.Error(flags, err)
	}
}
